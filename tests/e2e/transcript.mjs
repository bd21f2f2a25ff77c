// transcript.mjs - what a person watching the test gets to read: one line for everything that
// goes to the server (→) or comes from it (←), with the seconds since the start.

const started = performance.now();
const line = (arrow, what, detail) => {
  const seconds = ((performance.now() - started) / 1000).toFixed(3).padStart(8);
  console.log(`${seconds} ${arrow} ${what.padEnd(14)} ${detail}`.trimEnd());
};

export const sent = (what, detail = "") => line("→", what, detail);
export const received = (what, detail = "") => line("←", what, detail);
export const note = (what, detail = "") => line(" ", what, detail);

// Rejects with a message that says what was waited for.
export async function within(ms, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what} within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export function check(condition, message) {
  if (!condition) throw new Error(message);
}
