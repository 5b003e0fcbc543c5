/**
 * The records of the REST contract, as they come in JSON.
 */

export type SessionStatus = 'idle' | 'busy' | 'needs_you' | 'error' | 'directory_missing' | 'unknown';

export type WorktreeState = 'ok' | 'missing' | 'moved' | 'not_a_worktree';

export type PermissionReply = 'once' | 'always' | 'reject';

export interface Question {
  question: string;
  header?: string;
  options?: { label: string; description?: string }[];
  /** Several options may be chosen. */
  multiple?: boolean;
  /** An answer in own words is allowed; absent means yes. */
  custom?: boolean;
}

/** A session waits for a permission or for an answer. */
export interface Ask {
  id: string;
  kind: 'permission' | 'question';
  session_id: string;
  host: string;
  /** Title of the session. */
  title: string;
  permission: string | null;
  patterns: string[];
  /** Exactly what the reply "always" would allow from then on. */
  always?: string[];
  metadata?: Record<string, unknown>;
  questions: Question[];
  created: string;
}

export interface Session {
  id: string;
  title: string;
  directory: string;
  host: string;
  repo_root: string | null;
  project: string | null;
  status: SessionStatus;
  parent_id: string | null;
  created: string;
  updated: string;
  agent: string | null;
  /** `provider/model`. */
  model: string | null;
  cost: number;
  tokens: Record<string, unknown>;
  pending: Ask[];
  /** Why its last turn failed, where the status is `error`. */
  error?: string | null;
  /** While a busy session waits to call its model again. */
  retry?: Retry | null;
}

/** The model failed, and is called again. */
export interface Retry {
  attempt: number;
  message: string;
  at: string | null;
}

export interface Base {
  ref: string;
  sha: string;
  age_seconds?: number | null;
}

export interface Changes {
  modified: number;
  untracked: number;
  conflicted: number;
}

/** A linked worktree, or the main checkout. */
export interface Worktree {
  path: string;
  name: string;
  branch: string | null;
  head: string | null;
  is_main: boolean;
  state: WorktreeState;
  prunable: boolean;
  detached: boolean;
  locked: boolean;
  lock_reason: string | null;
  made_by_ocman: boolean;
  base: Base | null;
  /** `null` while it is not known. */
  changes: Changes | null;
  ahead: number | null;
  behind: number | null;
  merged: 'yes' | 'squashed' | 'no' | 'unknown';
  operation: string | null;
  last_activity: string | null;
  sessions?: Session[];
}

export interface WorktreeList {
  repo_root: string;
  default_base: Base | null;
  worktrees: Worktree[];
  sessions_elsewhere: Session[];
}

export interface Instance {
  url: string;
  port: number;
  repo_root: string;
  tmux_session: string | null;
  owner: 'ocman' | 'user';
  permission_seeded: boolean;
  opencode_version: string | null;
  pid: number | null;
  state?: 'running' | 'starting' | 'stopped' | 'failed';
}

export interface Notice {
  code: string;
  message: string;
}

export interface WorktreeRequest {
  directory: string;
  branch: string;
  base?: string | null;
  title?: string | null;
  prompt?: string | null;
  /** `none`: the worktree alone. */
  session?: 'auto' | 'new' | 'none';
  dry_run?: boolean;
  request_id?: string | null;
  host?: string;
}

export interface WorktreePlan {
  worktree_path: string;
  branch: string;
  base: Base | null;
  reused: boolean;
  branch_existed: boolean;
  carry: { path: string; bytes: number; how: 'copy' | 'link' }[];
  setup: string[];
  warnings: Notice[];
}

/** What `POST worktrees` answers. */
export interface WorktreeSession {
  session_id: string | null;
  worktree_path: string;
  branch: string;
  repo_root: string;
  host: string;
  reused: boolean;
  session_reused: boolean;
  prompt_sent: boolean;
  warnings: Notice[];
  session: Session | null;
}

export interface Capabilities {
  version: string;
  host: { id: string; name: string };
  worktree_sessions: boolean;
  missing: { name: string; required: boolean; reason: string; hint: string }[];
  opencode: { path: string; version: string } | null;
  launcher: 'tmux' | 'process';
}

/** A message: OpenCode's own record of it, and of its parts. */
export interface Message {
  info: MessageInfo;
  parts: Part[];
}

/** Times are milliseconds since 1970. */
export interface MessageInfo {
  id: string;
  sessionID: string;
  role: 'user' | 'assistant';
  time: { created: number; completed?: number };
  agent?: string;
  /** Of an assistant's message. */
  providerID?: string;
  modelID?: string;
  cost?: number;
  tokens?: Record<string, unknown>;
  error?: { name: string; data?: { message?: string } };
  [more: string]: unknown;
}

/** `text`, `reasoning`, `tool`, `file`, `step-start`, `step-finish`, `patch`, `retry` and others. */
export interface Part {
  id: string;
  messageID: string;
  sessionID: string;
  type: string;
  text?: string;
  tool?: string;
  state?: ToolState;
  [more: string]: unknown;
}

/** Of a part of type `tool`. */
export interface ToolState {
  status: 'pending' | 'running' | 'completed' | 'error';
  input?: Record<string, unknown>;
  output?: string;
  error?: string;
  title?: string;
  metadata?: Record<string, unknown>;
  time?: { start: number; end?: number };
  /** Parts of type `file`. */
  attachments?: Part[];
}

export interface MessagePage {
  /** Oldest first. */
  messages: Message[];
  /** For `before`: there are earlier ones. */
  next: string | null;
}

export interface Todo {
  content: string;
  status: 'pending' | 'in_progress' | 'completed' | 'cancelled';
  priority: string;
}

export interface SessionRequest {
  directory: string;
  title?: string | null;
  prompt?: string | null;
  agent?: string | null;
  model?: string | null;
  inherit_from?: string | null;
  request_id?: string | null;
  host?: string;
}

export interface PromptRequest {
  text: string;
  /** Paths in the session's directory. */
  files?: string[];
  agent?: string | null;
  /** `provider/model`. */
  model?: string | null;
}

/** What a session's composer can offer. */
export interface SessionOptions {
  agents: { name: string; description: string | null }[];
  models: { id: string; name: string; provider: string }[];
  commands: { name: string; description: string | null }[];
  default_model: string | null;
}

export interface FileDiff {
  path: string;
  /** Before it was renamed. */
  old_path?: string | null;
  status: 'added' | 'modified' | 'deleted' | 'renamed' | 'untracked' | 'conflicted';
  additions: number | null;
  deletions: number | null;
  binary: boolean;
  notebook: boolean;
  /** Unified; `null` when it is binary or too large. */
  patch: string | null;
}

export interface Diff {
  files: FileDiff[];
  /** There is more than is told. */
  truncated: boolean;
  /** What it is compared with. */
  against?: { ref: string; sha: string } | null;
}

export type LossCode =
  | 'uncommitted'
  | 'untracked'
  | 'ignored'
  | 'unreachable_commits'
  | 'operation'
  | 'locked'
  | 'busy_session'
  | 'kernel'
  | 'process'
  | 'unverified';

/** One reason why removing a worktree would lose something. */
export interface LossReason {
  code: LossCode;
  message: string;
  items: { path: string; bytes: number | null }[];
  total_bytes: number;
}

export interface Removal {
  reasons: LossReason[];
  safe: boolean;
}

export interface RemoveRequest {
  path: string;
  accept?: LossCode[];
  rescue_to?: string | null;
  rescue?: ('ignored' | 'untracked' | 'uncommitted')[];
  delete_branch?: boolean;
  host?: string;
}

export interface Removed {
  removed: true;
  branch_deleted: boolean;
  rescued: { path: string; to: string; bytes: number }[];
}

/** What the events WebSocket brings first, and again after a gap. */
export interface Snapshot {
  instances: Instance[];
  sessions: Session[];
  asks: Ask[];
  repositories: WorktreeList[];
}

/** Every later message of the events WebSocket. */
export interface HostEvent {
  type: string;
  host: string;
  seq?: number;
  data: any;
}

/** The machine that the Jupyter server runs on. */
export const LOCAL = 'local';
