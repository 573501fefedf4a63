// theme: light or dark, as the system or the reader wants it.

export type Choice = "auto" | "light" | "dark";

const KEY = "tslab.theme";
const CHOICES: readonly Choice[] = ["auto", "light", "dark"];

const system = matchMedia("(prefers-color-scheme: dark)");

export function chosen(): Choice {
  const kept = localStorage.getItem(KEY);
  return CHOICES.find((choice) => choice === kept) ?? "auto";
}

export const next = (choice: Choice): Choice =>
  CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length] ?? "auto";

/** Puts a choice in force and keeps it. */
export function choose(choice: Choice): void {
  localStorage.setItem(KEY, choice);
  apply();
}

/** The theme in force. */
export const inForce = (): string => document.documentElement.dataset["theme"] ?? "light";

function apply(): void {
  const choice = chosen();
  const isDark = choice === "dark" || (choice === "auto" && system.matches);
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
}

/** Follows the system from now on. */
export function follow(changed: () => void): void {
  apply();
  system.addEventListener("change", () => {
    apply();
    changed();
  });
}
