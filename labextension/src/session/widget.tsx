/**
 * A session as a tab of the application's main area.
 */
import * as React from 'react';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import { takeFocus } from '../focus';
import { ocmanIcon } from '../icons';
import { OcmanModel } from '../model';
import { statusWord } from '../panel/words';
import { AskDock } from './asks';
import { Composer } from './composer';
import { Conversation } from './conversation';
import { Drafts } from './drafts';
import { Painter } from './painter';
import { placeOf } from './place';
import { focusTranscript, stepEntry } from './transcript';
import { SessionCallbacks, SessionView, focusComposer } from './view';

export interface SessionWidgetOptions {
  model: OcmanModel;
  /** The session that is shown, as `keyOf` names it. */
  sessionKey: string;
  rendermime: IRenderMimeRegistry;
  trans: TranslationBundle;
  callbacks: SessionCallbacks;
  drafts: Drafts;
  /** Read anew each time that it is drawn. */
  enterSends?: () => boolean;
  /** How long an ask must have stood before it can be allowed, in milliseconds. */
  settleTime?: () => number;
  /** Whether turns say what they cost. */
  showCost?: () => boolean;
  /** The text of the notebook cell that is selected; `null` when none is. */
  insertCell?: () => string | null;
}

/** Longer titles say no more in a tab. */
const LONGEST_LABEL = 60;

export class SessionWidget extends ReactWidget {
  constructor(private _options: SessionWidgetOptions) {
    super();
    const { model, sessionKey, rendermime } = _options;
    this.sessionKey = sessionKey;
    this.conversation = new Conversation(model, sessionKey);
    this._painter = new Painter(rendermime);
    this.id = `ocman-session-${(count += 1)}`;
    this.addClass('ocman-Session');
    this.title.icon = ocmanIcon;
    this.title.closable = true;
    this.conversation.changed.connect(this._name, this);
    model.changed.connect(this._name, this);
    this._name();
  }

  readonly sessionKey: string;
  readonly conversation: Conversation;

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._options.model.changed.disconnect(this._name, this);
    super.dispose();
    this.conversation.dispose();
  }

  protected override render(): JSX.Element {
    const { model, sessionKey, trans, callbacks, drafts, enterSends, settleTime, showCost, insertCell } =
      this._options;
    const common = { conversation: this.conversation, model, sessionKey, trans };
    return (
      <SessionView
        {...common}
        painter={this._painter}
        callbacks={callbacks}
        isVisible={this.isVisible}
        showCost={showCost?.() ?? true}
        onClose={() => this.close()}
      >
        <AskDock {...common} settleTime={settleTime?.()} />
        <Composer {...common} drafts={drafts} enterSends={enterSends?.()} insertCell={insertCell} />
      </SessionView>
    );
  }

  protected override onCloseRequest(message: Message): void {
    super.onCloseRequest(message);
    this.dispose();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.update();
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this.update();
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    takeFocus(this, () => focusComposer(this.node) || focusTranscript(this.node));
  }

  /** Go to the next entry of the conversation, or the one before. */
  stepMessage(by: 1 | -1): void {
    if (!stepEntry(this.node, by) && by < 0) {
      void this.conversation.loadEarlier();
    }
  }

  /** Open or close what is folded in the entry that has the focus. */
  toggleMessage(): void {
    const entry = document.activeElement?.closest('[data-ocman-entry]');
    entry?.querySelector<HTMLElement>('[data-ocman-fold]')?.click();
  }

  focusMessages(): void {
    focusTranscript(this.node);
  }

  focusText(): void {
    focusComposer(this.node);
  }

  /** Send what is written, if it can be sent now. */
  send(): void {
    this.node.querySelector<HTMLElement>('.ocman-Composer [data-send]')?.click();
  }

  /** The tab says which session it is, and that it needs somebody. */
  private _name(): void {
    const { model, trans } = this._options;
    const { session, isRemoved } = this.conversation;
    const title = session?.title || trans.__('Session');
    const label = title.length > LONGEST_LABEL ? `${title.slice(0, LONGEST_LABEL)}…` : title;
    const status = session?.status ?? 'unknown';
    this.title.label = status === 'needs_you' && !isRemoved ? `! ${label}` : label;
    this.title.caption = [
      title,
      placeOf(model.state, session).name,
      statusWord(status, trans),
      session?.directory ?? ''
    ]
      .filter(line => line)
      .join('\n');
    const { dataset } = this.title;
    if (dataset[STATUS] !== status) {
      this.title.dataset = { ...dataset, [STATUS]: status };
    }
  }

  private readonly _painter: Painter;
}

/** The attribute of the tab that a style sheet can tell states by, without its "data-". */
const STATUS = 'ocman-status';

let count = 0;
