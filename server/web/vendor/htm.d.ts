/** Templates as calls of `h`. */
declare const htm: { bind<Result>(h: (...args: never[]) => Result): (strings: TemplateStringsArray, ...values: unknown[]) => Result | Result[] };
export default htm;
