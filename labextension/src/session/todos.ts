/**
 * The agent's own list of what it has to do, read again when it wrote it.
 */
import { OcmanModel } from '../model';
import { Message, Todo } from '../records';

/** The agent may write its list several times in a row, in milliseconds. */
export const TODOS_AFTER = 300;

export class Todos {
  /** `tell` is called when the list is another one. */
  constructor(
    private _model: OcmanModel,
    private _session: { id: string; host: string },
    private _tell: () => void
  ) {}

  get all(): readonly Todo[] {
    return this._all;
  }

  async load(): Promise<void> {
    clearTimeout(this._timer);
    this._timer = undefined;
    const mine = (this._request = {});
    try {
      const todos = await this._model.api.todos(this._session.id, this._session.host);
      if (this._request === mine) {
        this._all = todos;
        this._tell();
      }
    } catch {
      // The list as it was is better than none; that nothing can be read is said by the messages.
    }
  }

  /** Read the list a moment after a message tells that it was written. */
  follow(message: Message | undefined): void {
    for (const part of message?.parts ?? []) {
      if (part.tool === 'todowrite' && part.state?.status === 'completed' && !this._written.has(part.id)) {
        this._written.add(part.id);
        this._timer ??= setTimeout(() => void this.load(), TODOS_AFTER);
      }
    }
  }

  dispose(): void {
    clearTimeout(this._timer);
    this._request = null;
  }

  private _all: readonly Todo[] = [];
  private _request: object | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  /** The calls that wrote it and were seen. */
  private readonly _written = new Set<string>();
}
