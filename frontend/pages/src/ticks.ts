// The numbers at the axis of a chart.

const MOST_DIGITS = 9;

/** Write the numbers at an axis with as many digits behind the point as tell them apart, which stand `step` apart. */
export function showTicks(values: number[], step: number): string[] {
  let digits = 0;
  while (digits < MOST_DIGITS && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return values.map((one) => (one === 0 ? "0" : one.toFixed(digits)));
}
