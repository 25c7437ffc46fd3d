// Panes that a page does not show at first: they are loaded when somebody opens one.
export { ComparePane } from "./compare.tsx";
export { ContextPane } from "./context.tsx";
export { OverTime, UsagePane } from "./usage.tsx";
