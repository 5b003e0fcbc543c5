/**
 * The typed REST client of the ocman server extension, and its typed errors.
 */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { ApiError } from './errors';
import {
  Capabilities,
  LOCAL,
  PermissionReply,
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
    await this._request('POST', `sessions/${encodeURIComponent(sessionId)}/abort`, named(host));
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
