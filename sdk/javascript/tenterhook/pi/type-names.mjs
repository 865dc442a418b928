// Types that remain in an import if a host removes the types without analysing how names are used.

export const ExtensionAPI = undefined;
export const ExtensionContext = undefined;
export const ExtensionCommandContext = undefined;
export const ExtensionFactory = undefined;
