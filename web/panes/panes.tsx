// Panes, dialogs and forms that a page does not show at first: they are loaded after the first messages were painted, or when one is opened.
export { ComparePane } from "./compare.tsx";
export { ContextPane } from "./context.tsx";
export { Export } from "./export.tsx";
export { Help } from "./help.tsx";
export { Palette } from "./palette.tsx";
export { Asked } from "../parts/ask.tsx";
export { Hints } from "./hints.tsx";
export { MapPane } from "./map.tsx";
export { Empty, Newest } from "./newest.tsx";
export { StatePane } from "./state.tsx";
export { Timeline } from "./timeline.tsx";
export { OverTime, UsagePane } from "./usage.tsx";
