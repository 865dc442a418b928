// The colours of the components that extensions draw. They are the terminal's own basic colours, so they fit every
// background.

const FOREGROUND = {
  accent: 36,
  border: 34,
  borderAccent: 36,
  borderMuted: 90,
  success: 32,
  error: 31,
  warning: 33,
  muted: 90,
  dim: 90,
  thinkingText: 90,
  customMessageLabel: 35,
  toolOutput: 90,
  toolDiffAdded: 32,
  toolDiffRemoved: 31,
  toolDiffContext: 90,
  mdHeading: 33,
  mdLink: 34,
  mdLinkUrl: 90,
  mdCode: 36,
  mdCodeBlock: 32,
  mdCodeBlockBorder: 90,
  mdQuote: 90,
  mdQuoteBorder: 90,
  mdHr: 90,
  mdListBullet: 36,
  syntaxComment: 90,
  syntaxKeyword: 34,
  syntaxFunction: 33,
  syntaxVariable: 36,
  syntaxString: 32,
  syntaxNumber: 35,
  syntaxType: 36,
  thinkingMinimal: 90,
  thinkingLow: 34,
  thinkingMedium: 36,
  thinkingHigh: 35,
  thinkingXhigh: 31,
  bashMode: 32,
};
const BACKGROUND = {
  selectedBg: 100,
  userMessageBg: 100,
  customMessageBg: 45,
  toolPendingBg: 100,
  toolSuccessBg: 42,
  toolErrorBg: 41,
};
/** The text colour and the background of the terminal, for all other names. */
const [DEFAULT_TEXT, DEFAULT_BACKGROUND] = [39, 49];

const style = (on, off) => (text) => `\x1b[${on}m${text ?? ''}\x1b[${off}m`;

/** A theme with colours. */
export class ColouredTheme {
  sourcePath = undefined;
  sourceInfo = undefined;
  bold = style(1, 22);
  italic = style(3, 23);
  underline = style(4, 24);
  inverse = style(7, 27);
  strikethrough = style(9, 29);

  constructor(name = 'dark') {
    this.name = name;
  }
  fg(color, text) {
    return style(FOREGROUND[color] ?? DEFAULT_TEXT, DEFAULT_TEXT)(text);
  }
  bg(color, text) {
    return style(BACKGROUND[color] ?? DEFAULT_BACKGROUND, DEFAULT_BACKGROUND)(text);
  }
  getFgAnsi(color) {
    return `\x1b[${FOREGROUND[color] ?? DEFAULT_TEXT}m`;
  }
  getBgAnsi(color) {
    return `\x1b[${BACKGROUND[color] ?? DEFAULT_BACKGROUND}m`;
  }
  getColorMode() {
    return 'truecolor';
  }
  getThinkingBorderColor(level) {
    const name = `thinking${String(level).charAt(0).toUpperCase()}${String(level).slice(1)}`;
    return (text) => this.fg(name in FOREGROUND ? name : 'borderMuted', text);
  }
  getBashModeBorderColor() {
    return (text) => this.fg('bashMode', text);
  }
}

/** The theme of the components that are being drawn. Without a drawing, text has no colours. */
let drawn;
let drawings = 0;
const colours = new ColouredTheme();

/** Returns the theme of the components that are being drawn, or undefined if there are none. */
export const drawnTheme = () => drawn;

/** Colours text until the returned function is called. */
export function beginColours() {
  drawings += 1;
  drawn = colours;
  return () => {
    drawings -= 1;
    if (drawings === 0) drawn = undefined;
  };
}
