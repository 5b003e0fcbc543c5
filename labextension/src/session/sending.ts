/**
 * The way of a text from the composer to the session.
 */
import { TranslationBundle } from '@jupyterlab/translation';
import { ISignal, Signal } from '@lumino/signaling';
import { Api } from '../api';
import { ConnectionState } from '../connection';
import { ApiError } from '../errors';
import { KnownSession, fromKey } from '../state';
import { Deed, SessionChoices, deedOf, mentioned } from './completion';
import { Drafts } from './drafts';

/** Why the last text was not sent; it still stands in the composer. */
export type Problem =
  | { readonly kind: 'failed'; readonly error: ApiError; readonly asText: boolean }
  /** The text begins like a command, and there is none of this name. */
  | { readonly kind: 'unknown_command'; readonly name: string };

/** Sends the texts of one composer, one at a time. */
export class Sending {
  constructor(
    private _api: Pick<Api, 'prompt' | 'shell' | 'command'>,
    private _sessionKey: string,
    private _drafts: Drafts,
    private _choices: SessionChoices
  ) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isSending(): boolean {
    return this._isSending;
  }

  get problem(): Problem | null {
    return this._problem;
  }

  /** Send a text as what it begins like, or, `asText`, as a prompt in any case.  Nothing is thrown. */
  async send(text: string, asText = false): Promise<void> {
    if (this._isSending) {
      return;
    }
    // A text that was called back from the history leaves the draft as it is.
    const isDraft = this._drafts.get(this._sessionKey).text === text;
    this._isSending = true;
    this._problem = null;
    this._changed.emit();
    try {
      this._problem = await this._do(text, asText ? { kind: 'prompt', text: text.trim() } : deedOf(text));
      if (!this._problem && isDraft) {
        this._drafts.sent(this._sessionKey, text);
      } else if (!this._problem) {
        this._drafts.remember(this._sessionKey, text);
      }
    } catch (reason) {
      this._problem = { kind: 'failed', error: doubtful(ApiError.from(reason)), asText };
    } finally {
      this._isSending = false;
      this._changed.emit();
    }
  }

  /** What was wrong does not matter any more. */
  dismiss(): void {
    if (this._problem) {
      this._problem = null;
      this._changed.emit();
    }
  }

  private async _do(text: string, deed: Deed): Promise<Problem | null> {
    const { host, id } = fromKey(this._sessionKey);
    switch (deed.kind) {
      case 'shell':
        await this._api.shell(id, deed.command, host);
        return null;
      case 'command': {
        const isKnown = async (anew: boolean) =>
          (await this._choices.load(anew)).commands.some(({ name }) => name === deed.name);
        // It may be a new one.
        if (!(await isKnown(false)) && !(await isKnown(true))) {
          return { kind: 'unknown_command', name: deed.name };
        }
        await this._api.command(id, deed.name, deed.args, host);
        return null;
      }
      case 'prompt': {
        const { files, agent, model } = this._drafts.get(this._sessionKey);
        const request = { text: deed.text, files: mentioned(text, files), agent, model };
        await this._api.prompt(id, request, host);
        return null;
      }
    }
  }

  private _isSending = false;
  private _problem: Problem | null = null;
  private readonly _changed = new Signal<this, void>(this);
}

/** A request without an answer may have been done. */
function doubtful(error: ApiError): ApiError {
  return error.code === 'server_unreachable'
    ? new ApiError(
        error.code,
        error.message,
        'It may have arrived: look at the conversation before you send it again.'
      )
    : error;
}

/** A turn runs, or waits for an answer. */
export function isRunning(session: KnownSession | null): boolean {
  return session?.status === 'busy' || session?.status === 'needs_you';
}

/** Why a text cannot be sent now, for a human to read; `null` when it can. */
export function whyNot(
  text: string,
  session: KnownSession | null,
  connection: ConnectionState,
  trans: TranslationBundle
): string | null {
  if (connection.phase !== 'live') {
    return trans.__('Not connected: what you write is kept, and can be sent when the server is back.');
  }
  if (!session) {
    return trans.__('This session is not loaded.');
  }
  if (session.status === 'directory_missing') {
    return trans.__('The folder of this session is gone.');
  }
  const deed = deedOf(text);
  if (isRunning(session) && deed.kind !== 'prompt') {
    return deed.kind === 'shell'
      ? trans.__('A shell command does not queue: wait until the turn is over, or stop it.')
      : trans.__('A command does not queue: wait until the turn is over, or stop it.');
  }
  return null;
}

/** There is nothing in the text to send. */
export function isBlank(text: string): boolean {
  const deed = deedOf(text);
  return deed.kind === 'shell' ? !deed.command : !text.trim();
}
