// How fast this machine is at the moment, so that a budget of time means the same on each.
//
// A page builds a fixed list of elements, reads where they landed and writes them as text, again and again, under the
// throttling of the test: work of the kind that a page's first paint consists of, but none of the product's code.
// A machine that needs twice the reference for it gets twice the milliseconds, a faster one no fewer.

/** Milliseconds of the quickest round on the machine where the budgets were set, by Chromium's throttling. */
const REFERENCE = { 1: 32, 4: 150 };
const ROUNDS = 5;

/**
 * By which factor a budget of milliseconds is stretched here and now: 1 or more.
 * @param {import("@playwright/test").Page} page any page; its elements stay as they are
 * @param {1 | 4} throttling the rate of `Emulation.setCPUThrottlingRate` that is in force
 */
export async function pace(page, throttling = 1) {
  const quickest = await page.evaluate((rounds) => {
    let least = Infinity;
    for (let round = 0; round < rounds; round++) {
      const started = performance.now();
      const list = document.createElement("ul");
      for (let n = 0; n < 1500; n++) {
        const item = document.createElement("li");
        item.textContent = `item ${n}`;
        item.style.paddingLeft = `${n % 7}px`;
        list.append(item);
      }
      document.body.append(list);
      let height = 0;
      for (const item of list.children) height += item.getBoundingClientRect().height;
      JSON.parse(JSON.stringify({ height, text: list.outerHTML }));
      list.remove();
      least = Math.min(least, performance.now() - started);
    }
    return least;
  }, ROUNDS);
  const factor = Math.max(1, quickest / REFERENCE[throttling]);
  console.log(`pace: ${quickest.toFixed(1)} ms at throttling ${throttling}, budgets times ${factor.toFixed(2)}`);
  return factor;
}
