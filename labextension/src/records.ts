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
