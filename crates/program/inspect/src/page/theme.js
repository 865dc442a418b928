// Applies the saved colour scheme before the first paint, so it must not be a module.
(() => {
  try {
    const theme = JSON.parse(localStorage.getItem('tenterhook.theme'));
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch {
    // Storage can be switched off. Then the system's colour scheme applies.
  }
})();
