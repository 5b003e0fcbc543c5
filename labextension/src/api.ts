/**
 * The typed REST client of the ocman server extension, and its typed errors.
 */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { ApiError } from './errors';
import {
  Capabilities,
  Diff,
  Instance,
  LOCAL,
  MessagePage,
  PermissionReply,
  PromptRequest,
  Removal,
  Removed,
  RemoveRequest,
  Session,
  SessionOptions,
  SessionRequest,
  Todo,
  WorktreeList,
  WorktreePlan,
  WorktreeRequest,
  WorktreeSession
} from './records';

/** What an ask is answered with. */
export type AskReply = { reply: PermissionReply; message?: string } | { answers: string[][] };

/** The calls that the front end makes; the model is given any object of this shape. */
export interface Api {
  capabilities(): Promise<Capabilities>;
  worktrees(directory: string, options: { changes: boolean; host?: string }): Promise<WorktreeList>;
  planWorktree(request: WorktreeRequest): Promise<WorktreePlan>;
  createWorktree(request: WorktreeRequest): Promise<WorktreeSession>;
  replyAsk(askId: string, reply: AskReply, host?: string): Promise<void>;
  abortSession(sessionId: string, host?: string): Promise<void>;
  ensure(directory: string, host?: string): Promise<Instance>;
  stopInstance(directory: string, options: { force: boolean; host?: string }): Promise<void>;
  restartInstance(directory: string, options: { force: boolean; host?: string }): Promise<Instance>;
  removal(path: string, options: { deleteBranch: boolean; host?: string }): Promise<Removal>;
  removeWorktree(request: RemoveRequest): Promise<Removed>;
  worktreeDiff(path: string, against: string, host?: string): Promise<Diff>;
  session(id: string, host?: string): Promise<Session>;
  createSession(request: SessionRequest): Promise<Session>;
  renameSession(id: string, title: string, host?: string): Promise<Session>;
  deleteSession(id: string, host?: string): Promise<void>;
  /** The newest page, or the one that ends before `before` (a page's `next`). */
  messages(
    id: string,
    options: { limit?: number; before?: string | null; host?: string }
  ): Promise<MessagePage>;
  todos(id: string, host?: string): Promise<Todo[]>;
  sessionDiff(id: string, host?: string): Promise<Diff>;
  options(id: string, host?: string): Promise<SessionOptions>;
  /** Files of the session's directory whose path goes with `query`, the best first. */
  files(id: string, query: string, host?: string): Promise<string[]>;
  /** Resolves to whether it waits behind a running turn. */
  prompt(id: string, request: PromptRequest, host?: string): Promise<boolean>;
  shell(id: string, command: string, host?: string): Promise<void>;
  command(id: string, name: string, args: string, host?: string): Promise<void>;
  summarize(id: string, host?: string): Promise<void>;
  /** A copy of the messages before `messageId`, or of all. */
  fork(id: string, messageId: string | null, requestId: string, host?: string): Promise<Session>;
  /** A new connection to the stream of events. */
  openEvents(): WebSocket;
}

/** The API of the Jupyter server that this page came from. */
export class ServerApi implements Api {
  constructor(private _settings: ServerConnection.ISettings = ServerConnection.makeSettings()) {}

  capabilities(): Promise<Capabilities> {
    return this._request('GET', 'capabilities');
  }

  worktrees(directory: string, options: { changes: boolean; host?: string }): Promise<WorktreeList> {
    const query = { directory, changes: String(options.changes), ...named(options.host) };
    return this._request('GET', 'worktrees' + URLExt.objectToQueryString(query));
  }

  async planWorktree(request: WorktreeRequest): Promise<WorktreePlan> {
    const answer = await this._request<{ plan: WorktreePlan }>('POST', 'worktrees', {
      ...request,
      dry_run: true
    });
    return answer.plan;
  }

  createWorktree(request: WorktreeRequest): Promise<WorktreeSession> {
    return this._request('POST', 'worktrees', request);
  }

  async replyAsk(askId: string, reply: AskReply, host?: string): Promise<void> {
    await this._request('POST', `asks/${encodeURIComponent(askId)}/reply`, { ...reply, ...named(host) });
  }

  async abortSession(sessionId: string, host?: string): Promise<void> {
    await this._ofSession('POST', sessionId, '/abort', host);
  }

  ensure(directory: string, host?: string): Promise<Instance> {
    return this._request('POST', 'ensure', { directory, ...named(host) });
  }

  async stopInstance(directory: string, options: { force: boolean; host?: string }): Promise<void> {
    const { force, host } = options;
    await this._request('POST', 'instances/stop', { directory, force, ...named(host) });
  }

  restartInstance(directory: string, options: { force: boolean; host?: string }): Promise<Instance> {
    const { force, host } = options;
    return this._request('POST', 'instances/restart', { directory, force, ...named(host) });
  }

  removal(path: string, options: { deleteBranch: boolean; host?: string }): Promise<Removal> {
    const query = { path, delete_branch: String(options.deleteBranch), ...named(options.host) };
    return this._request('GET', 'worktrees/removal' + URLExt.objectToQueryString(query));
  }

  removeWorktree(request: RemoveRequest): Promise<Removed> {
    return this._request('DELETE', 'worktrees', request);
  }

  worktreeDiff(path: string, against: string, host?: string): Promise<Diff> {
    const query = { path, against, ...named(host) };
    return this._request('GET', 'worktrees/diff' + URLExt.objectToQueryString(query));
  }

  session(id: string, host?: string): Promise<Session> {
    return this._ofSession('GET', id, '', host);
  }

  createSession(request: SessionRequest): Promise<Session> {
    return this._request('POST', 'sessions', request);
  }

  renameSession(id: string, title: string, host?: string): Promise<Session> {
    return this._ofSession('PATCH', id, '', host, { title });
  }

  async deleteSession(id: string, host?: string): Promise<void> {
    await this._ofSession('DELETE', id, '', host);
  }

  messages(
    id: string,
    options: { limit?: number; before?: string | null; host?: string }
  ): Promise<MessagePage> {
    const { limit, before, host } = options;
    const query = { ...(limit ? { limit: String(limit) } : {}), ...(before ? { before } : {}) };
    return this._ofSession('GET', id, '/messages', host, query);
  }

  async todos(id: string, host?: string): Promise<Todo[]> {
    return (await this._ofSession<{ todos: Todo[] }>('GET', id, '/todos', host)).todos;
  }

  sessionDiff(id: string, host?: string): Promise<Diff> {
    return this._ofSession('GET', id, '/diff', host);
  }

  options(id: string, host?: string): Promise<SessionOptions> {
    return this._ofSession('GET', id, '/options', host);
  }

  async files(id: string, query: string, host?: string): Promise<string[]> {
    return (await this._ofSession<{ files: string[] }>('GET', id, '/files', host, { query })).files;
  }

  async prompt(id: string, request: PromptRequest, host?: string): Promise<boolean> {
    return (await this._ofSession<{ queued: boolean }>('POST', id, '/prompt', host, request)).queued;
  }

  async shell(id: string, command: string, host?: string): Promise<void> {
    await this._ofSession('POST', id, '/shell', host, { command });
  }

  async command(id: string, name: string, args: string, host?: string): Promise<void> {
    await this._ofSession('POST', id, '/command', host, { name, arguments: args });
  }

  async summarize(id: string, host?: string): Promise<void> {
    await this._ofSession('POST', id, '/summarize', host);
  }

  fork(id: string, messageId: string | null, requestId: string, host?: string): Promise<Session> {
    const body = { message_id: messageId, request_id: requestId };
    return this._ofSession('POST', id, '/fork', host, body);
  }

  openEvents(): WebSocket {
    const { appendToken, token, wsUrl, WebSocket } = this._settings;
    let url = URLExt.join(wsUrl, NAMESPACE, 'events');
    if (appendToken && token !== '') {
      // A browser cannot give a WebSocket any header; Jupyter's own sockets do the same.
      url += `?token=${encodeURIComponent(token)}`;
    }
    return new WebSocket(url);
  }

  /** `fields` are the query of a GET, and the body of all others. */
  private _ofSession<T>(
    method: string,
    id: string,
    rest: string,
    host?: string,
    fields: object = {}
  ): Promise<T> {
    const endpoint = `sessions/${encodeURIComponent(id)}${rest}`;
    const all = { ...fields, ...named(host) };
    return method === 'GET'
      ? this._request(method, endpoint + URLExt.objectToQueryString(all))
      : this._request(method, endpoint, all);
  }

  private async _request<T>(method: string, endpoint: string, body?: unknown): Promise<T> {
    const url = URLExt.join(this._settings.baseUrl, NAMESPACE, endpoint);
    // "no-store" would make Jupyter's client add a nameless query parameter.
    const init: RequestInit = { method, cache: 'no-cache' };
    if (body !== undefined) {
      init.body = JSON.stringify(body);
    }
    let response: Response;
    let text: string;
    try {
      response = await ServerConnection.makeRequest(url, init, this._settings);
      text = await response.text();
    } catch {
      throw ApiError.unreachable();
    }
    let data: unknown = null;
    try {
      data = JSON.parse(text);
    } catch {
      // A proxy's or Jupyter's own page.
    }
    if (!response.ok || data === null) {
      throw ApiError.fromResponse(response.status, data);
    }
    return data as T;
  }
}

const NAMESPACE = 'api/ocman';

function named(host?: string): { host?: string } {
  return host && host !== LOCAL ? { host } : {};
}
