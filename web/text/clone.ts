// What the sanitizer copies values with: every browser that runs the viewer has it.
export default structuredClone;
