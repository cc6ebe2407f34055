// What several texts are made with: the plural of a word, names of roles, a key of the keyboard.

/** The key beside which others are pressed, as this machine's keyboard has it. */
export const modifier = typeof navigator !== "undefined" && !/Mac|iPhone|iPad/.test(navigator.platform) ? "Ctrl " : "⌘";

export const plural = (count: number | string, one: string, many: string) => (String(count) === "1" ? one : many);

export const roleNames = { viewer: "Viewer", editor: "Editor", admin: "Admin", owner: "Owner" };
