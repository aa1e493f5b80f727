/** The colours of light and dark. Text has a contrast of at least 4.5 : 1 on its ground. */
export interface Theme {
  readonly dark: boolean;
  readonly ground: string;
  readonly raised: string; // panels
  readonly ink: string;
  readonly pale: string; // secondary text
  readonly line: string; // borders and ticks
  readonly query: string; // names of queries, everywhere
  readonly key: string; // names of keys, everywhere
  readonly focus: string;
  readonly warn: string;
  readonly hatch: string; // lines over what may not be looked at
}

export const LIGHT: Theme = {
  dark: false, ground: "#ffffff", raised: "#f6f7f9", ink: "#1b2330", pale: "#566072", line: "#d3d8e0",
  query: "#9a4a00", key: "#0b5cad", focus: "#1769d2", warn: "#a33000", hatch: "#b4bbc7",
};

export const DARK: Theme = {
  dark: true, ground: "#12161d", raised: "#1a202a", ink: "#e8ecf2", pale: "#a3adbd", line: "#333c4a",
  query: "#f2a65a", key: "#6db3f8", focus: "#7cb8ff", warn: "#ff9a70", hatch: "#4a5566",
};
