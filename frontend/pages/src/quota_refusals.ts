// What the API answers where it has changed nothing of the quota file.
import { Refused } from "./api";
import type { ChangedMeanwhile, SettingError, SettingsRefused } from "./api_types";

/** The errors that the changes would make, each with its setting; undefined where it was refused for something else. */
export function settingErrors(error: unknown): SettingError[] | undefined {
  return error instanceof Refused && error.status === 422 ? (error.problem as SettingsRefused).errors : undefined;
}

/** Who has changed the file since, and how; undefined where it was refused for something else. */
export function changedMeanwhile(error: unknown): ChangedMeanwhile | undefined {
  return error instanceof Refused && error.problem.code === "quotas-changed-meanwhile" ? (error.problem as ChangedMeanwhile) : undefined;
}

/** What somebody reads whose changes came too late: who was faster, what is new, and that nothing of theirs is lost. */
export function sayNewer(newer: ChangedMeanwhile): string[] {
  const next = "Your changes are still here: “Save on top of the new version” makes them there.";
  return newer.changes.length === 0
    ? [`${newer.sentence} None of the settings that you see is another one now. ${next}`]
    : [`${newer.sentence} ${next} New there:`, ...newer.changes];
}
