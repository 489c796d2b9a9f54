// Made by `python docs/generate.py` of the endpoints in bulletin_spawner/service: change those.

export interface AllowanceReport {
  kind: "allowance-report";
  rows: AllowanceRow[];
  slot_word: string;
  has_more: boolean;
}

export interface AllowanceRow {
  id: string;
  user: string;
  project: string;
  walltime_ms: number | null;
  gpus: number | null;
  is_exclusive: boolean;
  budget_ms: number | null;
  budget_of: string;
  for_ms: number;
  why: string;
  state: "declined" | "granted" | "open" | "over" | "withdrawn";
  asked_at_ms: number;
  by: string;
  sentence: string;
  until_at_ms: number | null;
  left_ms: number | null;
  is_own: boolean;
  may_decide: boolean;
  may_grant: boolean;
  leads: string[];
  needs_admin: boolean;
  used_milli: number;
  recent_ms: number;
}

export interface AllowanceSelection {
  is_all: boolean;
  behind: string;
}

export interface AllowanceWanted {
  project: string;
  why: string;
  walltime_ms: number | null;
  gpus: number | null;
  is_exclusive: boolean;
  budget_ms: number | null;
  budget_of: string;
  for_ms: number | null;
}

export interface AnnouncedNow {
  sentence: string;
  by: string;
  left_ms: number;
}

export interface AnnouncementWanted {
  sentence: string;
  for_ms: number;
}

export interface ApiProblem {
  code: string;
  sentence: string;
  is_logged_out: boolean;
  is_session_over: boolean;
}

export interface BoostReport {
  kind: "boost-report";
  boosts: BoostRow[];
}

export interface BoostRow {
  user: string;
  project: string;
  for_ms: number;
  by: string;
  why: string;
}

export interface BoostWanted {
  user: string;
  for_ms: number;
  why: string;
}

export interface Cancelled {
  kind: "cancelled";
  lease: string;
  user: string;
  what: "ended" | "interrupted" | "withdrawn";
}

export interface CellNamed {
  id: string;
}

export type CellOutcome = "cancelled" | "cannot-start" | "evicted" | "executor-died" | "flood" | "interrupted" | "keep-over" | "kept" | "kernel-gone" | "left" | "memory-limit" | "no-such-lease" | "node-lost" | "not-held" | "not-released" | "process-limit" | "raised" | "reclaimed" | "return-late" | "returned" | "state-too-large" | "stopped" | "superseded" | "unrecognized" | "walltime";

export interface CellReceipt {
  cell: string;
  label: string;
  project: string;
  qos: string;
  node: string;
  outcome: CellOutcome;
  ended: string;
  ended_at_ms: number;
  ran_ms: number;
  held_ms: number;
  in_quota_ms: number;
  borrowed_ms: number;
  refunded_ms: number;
  slots: number;
  bytes_sent: number;
  bytes_returned: number;
  peak_memory_bytes: number | null;
  mean_utilization: number | null;
  charged_ms: number | null;
  runs: number;
  waited_ms: number | null;
  is_exclusive: boolean;
  advice: string;
}

export interface ChangedByHand {
  kind: "changed";
  lease: string;
  user: string;
  project: string;
  what: "extended" | "held" | "put-first" | "released" | "requeued";
  why: string;
  grace_ms: number;
  walltime_ms: number;
  left_ms: number;
}

export interface ChangedMeanwhile {
  code: string;
  sentence: string;
  is_logged_out: boolean;
  is_session_over: boolean;
  version: string;
  by: string;
  changes: string[];
}

export interface DeclineWanted {
  sentence: string;
}

export interface DrainWanted {
  in_ms: number | null;
  why: string;
}

export interface EditsTried {
  edits: SettingEdit[];
  version: string;
}

export interface EditsWanted {
  edits: SettingEdit[];
  version: string;
  why: string;
}

export interface Freeing {
  node: string;
  slots: string[];
  in_ms: number;
}

export interface GrantWanted {
  for_ms: number | null;
  sentence: string;
}

export interface LenderShown {
  rank: number;
  project: string;
  lent_ms: number;
  is_own: boolean;
}

export interface MeView {
  user: string;
  role: "admin" | "lead" | "user";
  slot_word: string;
  running: MyCell[];
  waiting: ShownRequest[];
  projects: ProjectStanding[];
  own_projects: string[];
  used_budgets: UsedBudgets[];
}

export interface MemberNamed {
  project: string;
  user: string;
}

export interface MyCell {
  lease: string;
  cell: string | null;
  label: string;
  project: string;
  qos: string;
  node: string;
  slots: string[];
  state: string;
  for_ms: number;
  walltime_ms: number;
  is_in_quota: boolean | null;
  busy_percent: number | null;
  used_bytes: number | null;
  memory_bytes: number;
  idle_ms: number;
}

export interface NoParameters {
}

export interface NodeCell {
  cell: string;
  node: string;
  state: "finished" | "lost" | "running";
  line: string;
  label: string;
  since_ms: number;
  is_attended: boolean;
  attach: string;
}

export interface NodeCells {
  cells: NodeCell[];
  missing: string[];
}

export interface NodeGivenBack {
  node: string;
  why: string;
}

export interface NodeNamed {
  node: string;
}

export interface NodeState {
  node: string;
  is_drained: boolean;
  in_ms: number | null;
  cells: number;
  sentence: string;
}

export interface NowView {
  slot_word: string;
  uptime_ms: number;
  counts: PoolCounts;
  nodes: ShownNode[];
  queue: ShownRequest[];
  own_queue: ShownRequest[];
  own_waiting: number;
  frees_next: Freeing[];
  warnings: string[];
}

export interface PoolCounts {
  total: number;
  free: number;
  busy: number;
  starting: number;
  idle: number;
  hot: number;
  leaving: number;
  drained: number;
  waiting: number;
  mine_running: number;
  mine_waiting: number;
}

export interface PreviewRow {
  project: string;
  cells: number;
  waited_now_ms: number;
  waited_then_ms: number;
  at_once_now: number;
  at_once_then: number;
}

export interface ProjectAsked {
  project: string;
  stretch: "day" | "hour" | "week";
  count: number;
}

export interface ProjectChoice {
  project: string;
  parent: string | null;
  is_led: boolean;
  guaranteed_milli: number;
  promised_milli: number | null;
}

export interface ProjectNamed {
  project: string;
}

export interface ProjectStanding {
  project: string;
  used_milli: number;
  held_milli: number;
  guaranteed_milli: number;
  promised_milli: number | null;
  limit_milli: number | null;
  waiting: number;
  budget_ms: number | null;
  budget_left_ms: number | null;
  period: string | null;
  period_ends_in_ms: number | null;
  borrows_in_ms: number;
  credits_ms: number;
  class_hours: string;
  rule: string;
  is_led: boolean;
}

export interface ProjectView {
  project: string;
  slot_word: string;
  is_led: boolean;
  standing: ProjectStanding | null;
  stretch: "day" | "hour" | "week";
  parts: UsePart[];
  members: UseOf[];
  labels: UseOf[];
  lenders: LenderShown[];
  running: RunningShown[];
  waiting: ShownRequest[];
  boosts: BoostRow[];
}

export interface ProjectsView {
  projects: ProjectChoice[];
  opens: string;
}

export interface QuotaFileReport {
  kind: "quota-file";
  file: string;
  version: string;
  text: string;
  settings: SettingEdit[];
  schema: string;
  obstacle: string;
  errors: string[];
  projects: string[] | null;
}

export interface QuotaLog {
  kind: "quota-log";
  versions: QuotaVersion[];
}

export interface QuotaPreview {
  kind: "quota-preview";
  state: "done" | "failed" | "working";
  changes: string[];
  warnings: string[];
  diff: string;
  sentence: string;
  by_project: string;
  rows: PreviewRow[];
  reclaims_now: number;
  reclaims_then: number;
  refused_now: number;
  refused_then: number;
  cut_now: number;
  cut_then: number;
}

export interface QuotaVersion {
  version: string;
  at_ms: number;
  by: string;
  why: string;
  changes: string[];
  is_in_force: boolean;
}

export interface QuotasEdited {
  kind: "quotas-edited";
  version: string;
  before: string;
  changes: string[];
  warnings: string[];
  diff: string;
}

export interface Reason {
  why: string;
}

export interface ReceiptsAsked {
  limit: number;
}

export interface ReceiptsView {
  slot_word: string;
  receipts: CellReceipt[];
  week_wait_ms: number | null;
}

export interface RunningShown {
  lease: string;
  user: string;
  project: string;
  label: string;
  node: string;
  slots: number;
  state: string;
  for_ms: number;
  walltime_ms: number;
  is_in_quota: boolean | null;
}

export interface SettingEdit {
  path: string[];
  value: string | boolean | number | number | string[] | null;
}

export interface SettingError {
  path: string[];
  sentence: string;
}

export interface SettingsRefused {
  code: string;
  sentence: string;
  is_logged_out: boolean;
  is_session_over: boolean;
  errors: SettingError[];
}

export interface ShownNode {
  node: string;
  slots: ShownSlot[];
  is_drained: boolean;
  drains_in_ms: number | null;
  why_drained: string;
  owner: string;
}

export interface ShownRequest {
  position: number;
  user: string;
  is_mine: boolean;
  gpus: number;
  qos: string;
  waited_ms: number;
  usual_ms: number | null;
  most_ms: number | null;
  reason: string;
  project: string | null;
  label: string;
  lease: string | null;
  may_change: boolean;
  is_for_own: boolean;
}

export interface ShownSlot {
  slot: string;
  name: string;
  state: "busy" | "drained" | "free" | "hot" | "idle" | "leaving" | "starting";
  memory_bytes: number;
  busy_percent: number | null;
  used_bytes: number | null;
  for_ms: number;
  ends_in_ms: number | null;
  group: number | null;
  user: string | null;
  is_mine: boolean;
  project: string | null;
  label: string;
  qos: string;
  is_in_quota: boolean | null;
  is_exclusive: boolean;
  lease: string | null;
}

export interface UndoWanted {
  version: string;
  to: string;
  why: string;
}

export interface UsageAsked {
  since_ms: number;
  until_ms: number;
  by: "label" | "project" | "qos" | "user";
  period: "all" | "day" | "month" | "week";
}

export interface UsageFile {
  csv: string;
  has_more: boolean;
}

export interface UseOf {
  name: string;
  user: string;
  slot_ms: number;
  borrowed_ms: number;
  cells: number;
}

export interface UsePart {
  from_ms: number;
  until_ms: number;
  in_quota_ms: number;
  borrowed_ms: number;
  hot_ms: number;
  lent_ms: number;
  guaranteed_ms: number;
}

export interface UsedBudgets {
  project: string;
  budgets: string[];
}
