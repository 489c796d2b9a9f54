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
