// A scale of colours that follows a value, so that one very large value does not blacken all the others.

// `value` gets the middle of the scale, 0 and `limit` keep its ends: share(v) = asinh(v / s) / asinh(limit / s). Below s equal
// steps of v are equal steps of colour, above it equal ratios are. Of asinh(limit / s) = 2 asinh(value / s) the solution is
// a = acosh(limit / 2 value), s = value / sinh(a). -> function from a value to its share of the scale, or null where `value`
// stands above the middle already.
export function contrastAt(value, limit) {
  if (!(value > 0) || value >= limit / 2) return null;
  const half = Math.acosh(limit / (2 * value));
  const start = value / Math.sinh(half);
  return (one) => Math.min(1, Math.asinh(Math.max(0, one) / start) / (2 * half));
}
