// A dialog that stands in the address, so that a link can open it: `?new=1`. Closed, it leaves the address.
//
//     const [isMaking, setMaking] = useOpened("new", "admin");

import { useLocation } from "preact-iso";
import { may, type Role } from "../state/session";

/** `least` is the role that may use the dialog; for other roles it stays closed. */
export function useOpened(name: string, least: Role): [isOpen: boolean, set: (isOpen: boolean) => void] {
  const { query, path, route } = useLocation();
  const set = (isOpen: boolean) => {
    const parameters = new URLSearchParams(query);
    if (isOpen) parameters.set(name, "1");
    else parameters.delete(name);
    route(path + (parameters.size ? `?${parameters}` : ""), true);
  };
  return [query[name] !== undefined && may(least), set];
}
