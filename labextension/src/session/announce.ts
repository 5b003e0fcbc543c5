/**
 * What a screen reader is told without being asked: one line for each ask and for each turn that is over.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { askSentence } from '../asks';
import { KnownAsk, State, keyOf } from '../state';
import { Conversation } from './conversation';
import { failure, firstWords, wasStopped } from './words';

/** The newest line; empty at first. */
export function useAnnouncement(conversation: Conversation, state: State, trans: TranslationBundle): string {
  const [line, setLine] = React.useState('');
  const { session, isBusy, sessionKey } = conversation;
  const status = session?.status;

  const ask = lastAsk(state, sessionKey);
  const told = React.useRef(ask?.ask.id);
  React.useEffect(() => {
    if (ask && told.current !== ask.ask.id) {
      told.current = ask.ask.id;
      setLine(askSentence(ask.ask, trans));
    }
  }, [ask, trans]);

  const wasBusy = React.useRef(isBusy);
  React.useEffect(() => {
    if (wasBusy.current && !isBusy) {
      setLine(outcome(conversation, trans));
    }
    wasBusy.current = isBusy;
  }, [conversation, isBusy, status, trans]);
  return line;
}

function lastAsk(state: State, sessionKey: string): KnownAsk | undefined {
  let last: KnownAsk | undefined;
  for (const known of state.asks.values()) {
    if (known.phase === 'open' && keyOf(known.ask.host, known.ask.session_id) === sessionKey) {
      last = known;
    }
  }
  return last;
}

function outcome({ session, messages }: Conversation, trans: TranslationBundle): string {
  const last = messages[messages.length - 1];
  const error = session?.status === 'error' ? (session.error ?? '') : last && failure(last.info);
  if (last && wasStopped(last.info)) {
    return trans.__('Stopped');
  }
  if (typeof error === 'string') {
    return trans.__('The turn failed: %1', firstWords(error));
  }
  const said = last?.parts.filter(({ type, text }) => type === 'text' && text).pop()?.text ?? '';
  return said ? trans.__('Turn finished: %1', firstWords(said.slice(0, 600))) : trans.__('Turn finished');
}
