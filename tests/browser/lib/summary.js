// The last words of a run: each test that failed, or passed only when tried again, with its error in a
// few lines. Records of a run often keep no more than its end.

const ERROR_LINES = 14;
const COLORS = /\u001b\[[0-9;]*m/g;

export default class Summary {
  tests = [];

  onTestEnd(test) {
    if (!this.tests.includes(test)) this.tests.push(test);
  }

  onEnd() {
    for (const test of this.tests.filter((test) => ["unexpected", "flaky"].includes(test.outcome()))) {
      console.log(`\n${test.outcome()}: ${test.location.file.split("/").pop()}:${test.location.line} ${test.title}`);
      for (const { retry, status, duration, errors } of test.results.filter((result) => result.errors.length)) {
        const text = errors
          .map((error) => error.message ?? error.value ?? "")
          .join("\n")
          .replace(COLORS, "");
        console.log(`  try ${retry + 1}, ${status} after ${duration} ms`);
        for (const line of text
          .split("\n")
          .filter((line) => line.trim())
          .slice(0, ERROR_LINES))
          console.log(`    ${line.slice(0, 200)}`);
      }
    }
  }
}
