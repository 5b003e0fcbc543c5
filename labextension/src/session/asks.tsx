/**
 * The asks of a session, above its composer: answered one after the other.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { caretLeftIcon, caretRightIcon } from '@jupyterlab/ui-components';
import { ISignal } from '@lumino/signaling';
import { SETTLE, askText, isOutside, outcomeText, permissionName, runningTool } from '../asks';
import { OcmanModel } from '../model';
import { Foreign, IconButton } from '../panel/button';
import { useSettled, useSignal } from '../panel/hooks';
import { Answer, noAnswers } from '../questions';
import { Message } from '../records';
import { KnownAsk, KnownSession, keyOf } from '../state';
import { MESSAGE, useHandedFocus } from './answering';
import { PermissionForm } from './permissionform';
import { placeOf } from './place';
import { QuestionForm } from './questionform';
import { useSelected } from './selected';

interface Props {
  conversation: {
    readonly session: KnownSession | null;
    readonly messages: readonly Message[];
    readonly changed: ISignal<any, void>;
  };
  model: OcmanModel;
  sessionKey: string;
  trans: TranslationBundle;
  /** How long an ask must have stood before it can be allowed, in milliseconds. */
  settleTime?: number;
}

/** What was begun and is not sent, by the key of the ask; it stays while another ask is looked at. */
interface Begun {
  readonly answers?: readonly Answer[];
  /** Why it is rejected; `null` while no reason is written. */
  readonly reason?: string | null;
}

export function AskDock(props: Props): JSX.Element | null {
  const { conversation, model, sessionKey, trans, settleTime = SETTLE } = props;
  useSignal(model.changed);
  const asks = [...model.state.asks].filter(
    ([, { ask }]) => keyOf(ask.host, ask.session_id) === sessionKey
  );
  const open = asks.filter(([, known]) => known.phase !== 'done');
  const over = asks.filter(([, known]) => known.phase === 'done').pop()?.[1];

  const [chosen, setChosen] = React.useState<string | null>(null);
  const [begun, setBegun] = React.useState<Readonly<Record<string, Begun>>>({});
  const place = Math.max(
    0,
    open.findIndex(([key]) => key === chosen)
  );
  const shown = open[place] as [string, KnownAsk] | undefined;
  // An ask that came or went may have moved what is under the pointer.
  const settled = useSettled([...open.map(([key]) => key), shown?.[0]].join('\n\n'), settleTime);

  const opened = useSelected(conversation.changed, () => conversation.session);
  const running = useSelected(conversation.changed, () =>
    shown ? JSON.stringify(runningTool(conversation.messages)) : 'null'
  );
  if (!shown && !over) {
    return null;
  }

  const session = opened ?? model.state.sessions.get(sessionKey) ?? null;
  const { name, path } = placeOf(model.state, session);
  const ask = shown?.[1].ask;
  const look = (by: number) => setChosen(open[(place + by + open.length) % open.length][0]);
  const form = shown && {
    name,
    model,
    trans,
    settled,
    askKey: shown[0],
    known: shown[1],
    isLive: model.connection.phase === 'live'
  };
  const change = (facts: Begun) =>
    shown && setBegun({ ...begun, [shown[0]]: { ...begun[shown[0]], ...facts } });

  return (
    <Dock label={trans.__('Needs your answer')}>
      <div className="ocman-Dock-head">
        {ask && (
          <span className="ocman-Dock-title">
            <span className="ocman-Ask-mark" aria-hidden="true">
              {ask.kind === 'question' ? '? ' : '! '}
            </span>
            {ask.kind === 'question'
              ? trans.__('The agent asks')
              : trans.__('Needs a permission: %1', permissionName(ask.permission ?? '', trans))}
          </span>
        )}
        {ask?.kind === 'permission' && path && isOutside(ask, path) && (
          <span className="ocman-Tag ocman-mod-warn">{trans.__('outside the worktree')}</span>
        )}
        <span className="ocman-Dock-outcome" role="status">
          {over && (
            <>
              {outcomeText(over, trans)} <Foreign text={askText(over.ask, trans).object} />
            </>
          )}
        </span>
        {open.length > 1 && (
          <span className="ocman-Dock-count">
            <IconButton icon={caretLeftIcon} label={trans.__('Previous ask')} onClick={() => look(-1)} />
            {trans.__('%1 of %2', place + 1, open.length)}
            <IconButton icon={caretRightIcon} label={trans.__('Next ask')} onClick={() => look(1)} />
          </span>
        )}
      </div>
      {form && ask!.kind === 'permission' && (
        <PermissionForm
          key={form.askKey}
          {...form}
          running={JSON.parse(running)}
          reason={begun[form.askKey]?.reason ?? null}
          onReason={reason => change({ reason })}
        />
      )}
      {form && ask!.kind === 'question' && (
        <QuestionForm
          key={form.askKey}
          {...form}
          answers={begun[form.askKey]?.answers ?? noAnswers(ask!.questions)}
          onAnswers={answers => change({ answers })}
        />
      )}
    </Dock>
  );
}

/** Takes the focus of a form that goes away, and hands it on when there is nothing left to answer. */
function Dock({ label, children }: { label: string; children: React.ReactNode }): JSX.Element {
  const dock = useHandedFocus<HTMLElement>(MESSAGE);
  return (
    <section ref={dock} className="ocman-Dock" aria-label={label} tabIndex={-1}>
      {children}
    </section>
  );
}
