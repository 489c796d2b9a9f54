// The numbers at the axis of a chart.

const MOST_DIGITS = 9;

/** Write the numbers at an axis with as many digits behind the point as tell them apart, which stand `step` apart. */
export function showTicks(values: number[], step: number): string[] {
  let digits = 0;
  while (digits < MOST_DIGITS && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return values.map((one) => (one === 0 ? "0" : one.toFixed(digits)));
}

const DAY_S = 86_400;

/** Write times at an axis, in seconds since 1970, as everywhere on the pages: the day, and within days the hour. */
export function showDates(splits: number[], stepS: number): string[] {
  const day = (at: Date) => at.toLocaleDateString([], { day: "numeric", month: "short" });
  const hour = (at: Date) => at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return splits.map((seconds) => {
    const at = new Date(seconds * 1000);
    return stepS >= DAY_S || (at.getHours() === 0 && at.getMinutes() === 0) ? day(at) : hour(at);
  });
}
