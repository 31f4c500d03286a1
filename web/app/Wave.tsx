/** The mark of the product. */
export function Wave() {
  return (
    <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" className="wave">
      <rect width="32" height="32" rx="8" />
      <path d="M5 20q5.5-6 11 0t11 0M5 13q5.5-6 11 0t11 0" />
    </svg>
  );
}
