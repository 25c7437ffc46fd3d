// What modules of the viewer ask of the page when they are loaded. Import it first.
Object.assign(globalThis, {
  document: { querySelector: () => null }, location: { pathname: "/", search: "" }, addEventListener() {},
});
