// The button that changes the colours. `theme.js` applies the saved choice before the first paint.

import { icon } from './element.js';

const KEY = 'tenterhook.theme';
const NAMES = { auto: 'Colours of the system', light: 'Light colours', dark: 'Dark colours' };

/** Makes a button go through the choices. */
export function themeButton(button) {
  const order = Object.keys(NAMES);
  let theme = document.documentElement.dataset.theme ?? 'auto';
  const draw = () => {
    button.replaceChildren(icon(theme));
    button.title = NAMES[theme];
    button.setAttribute('aria-label', `${NAMES[theme]}; change`);
  };
  button.addEventListener('click', () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, JSON.stringify(theme));
    } catch {
      // Storage can be switched off. Then the choice lasts until the page is closed.
    }
    draw();
  });
  draw();
}
