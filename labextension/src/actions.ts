/**
 * What can be done to a session, a worktree or an OpenCode process from its row, and how it went.
 */
import { UUID } from '@lumino/coreutils';
import { ISignal, Signal } from '@lumino/signaling';
import { ApiError } from './errors';
import { OcmanModel } from './model';
import { Session } from './records';
import { KnownSession, Repository, keyOf, withEntry, without } from './state';
import { Subject, rowKey } from './subject';

/** Something that did not work, shown in the row that it was done to. */
export interface Problem {
  readonly error: ApiError;
  readonly retry: () => void;
}

export class Actions {
  constructor(private _model: OcmanModel) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** By the key of the row. */
  get problems(): ReadonlyMap<string, Problem> {
    return this._problems;
  }

  dismiss(row: string): void {
    this._set(row, null);
  }

  rename(session: KnownSession, title: string): Promise<unknown> {
    return this._do(ofSession(session), () => this._api.renameSession(session.id, title, session.host));
  }

  /** Delete the session and its messages; its worktree stays.  Whether it is gone. */
  async delete(session: KnownSession): Promise<boolean> {
    const { id, host } = session;
    const gone = await this._do(ofSession(session), () => this._api.deleteSession(id, host).then(() => true));
    return gone === true;
  }

  abort(session: KnownSession): Promise<unknown> {
    return this._do(ofSession(session), () => this._api.abortSession(session.id, session.host));
  }

  /** A copy of the session with all its messages; `made` is called with its key. */
  fork(session: KnownSession, made: (key: string) => unknown): Promise<unknown> {
    const { id, host } = session;
    const request = UUID.uuid4();
    return this._do(ofSession(session), () => this._api.fork(id, null, request, host).then(told(made)));
  }

  /** A session in this folder; `made` is called with its key.  `subject` is what the user pointed at. */
  newSession(subject: Subject, directory: string, made: (key: string) => unknown): Promise<unknown> {
    const { host } = subject;
    const request = { directory, host, request_id: UUID.uuid4() };
    return this._do(subject, () => this._api.createSession(request).then(told(made)));
  }

  async start(repository: Repository): Promise<void> {
    await this._do(ofRepository(repository), () => this._api.ensure(repository.root, repository.host));
  }

  /** Without `force` the error `session_busy` is given back, so that the user can be asked. */
  stop(repository: Repository, force: boolean): Promise<ApiError | null> {
    const { root, host } = repository;
    return this._unlessBusy(repository, force, () => this._api.stopInstance(root, { force, host }));
  }

  restart(repository: Repository, force: boolean): Promise<ApiError | null> {
    const { root, host } = repository;
    return this._unlessBusy(repository, force, () => this._api.restartInstance(root, { force, host }));
  }

  private get _api() {
    return this._model.api;
  }

  private async _unlessBusy(
    repository: Repository,
    force: boolean,
    call: () => Promise<unknown>
  ): Promise<ApiError | null> {
    let busy: ApiError | null = null;
    await this._do(ofRepository(repository), async () => {
      try {
        return await call();
      } catch (reason) {
        busy = ApiError.from(reason);
        if (force || busy.code !== 'session_busy') {
          throw busy;
        }
        return null;
      }
    });
    return busy;
  }

  /** One thing at a time for each row; `null` when it did not work. */
  private async _do<T>(subject: Subject, call: () => Promise<T>): Promise<T | null> {
    const row = rowKey(subject);
    if (this._pending.has(row)) {
      return null;
    }
    this._pending.add(row);
    this._set(row, null);
    try {
      return await call();
    } catch (reason) {
      this._set(row, { error: ApiError.from(reason), retry: () => void this._do(subject, call) });
      return null;
    } finally {
      this._pending.delete(row);
    }
  }

  private _set(row: string, problem: Problem | null): void {
    const problems = problem ? withEntry(this._problems, row, problem) : without(this._problems, row);
    if (problems !== this._problems) {
      this._problems = problems;
      this._changed.emit();
    }
  }

  private _problems: ReadonlyMap<string, Problem> = new Map();
  private readonly _pending = new Set<string>();
  private readonly _changed = new Signal<this, void>(this);
}

/** With the key of a session, without waiting for what is done with it. */
function told(made: (key: string) => unknown): (session: Session) => void {
  return ({ host, id }) => void made(keyOf(host, id));
}

function ofSession({ host, id }: KnownSession): Subject {
  return { kind: 'session', host, id };
}

function ofRepository({ host, root }: Repository): Subject {
  return { kind: 'repository', host, root };
}
