// Everything that the console says, in English; another language is another folder of this shape.
//
// Sentence case, plain verbs, no exclamation marks. What depends on a value is a function of it.

import { dashboards } from "./en/dashboards";
import { data } from "./en/data";
import { frame } from "./en/frame";
import { organisation } from "./en/organisation";
import { rules } from "./en/rules";

export const texts = { ...frame, ...organisation, ...data, ...dashboards, ...rules };
