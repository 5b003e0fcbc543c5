/**
 * How an ask of a session is answered: the parts that permissions and questions have in common.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { AskReply } from '../api';
import { OcmanModel } from '../model';
import { Button, ErrorText } from '../panel/button';
import { KnownAsk } from '../state';

/** The widget that shows the session. */
const TAB = '.lm-Widget';

/** What holds the asks of a session, and what its messages are written in. */
export const DOCK = '.ocman-Dock';
export const MESSAGE = '.ocman-Composer textarea';

export interface FormProps {
  model: OcmanModel;
  trans: TranslationBundle;
  askKey: string;
  known: KnownAsk;
  /** The worktree's. */
  name: string;
  isLive: boolean;
  /** It stood here long enough to have been read. */
  settled: boolean;
}

/**
 * Allows only what was pressed after it could be read: no press that began before, no key that is held down.
 */
export function AllowButton(props: {
  mood?: 'accept';
  ready: boolean;
  onAllow: () => void;
  answer: string;
  title: string;
  label: string;
  children: React.ReactNode;
}): JSX.Element {
  const { mood, ready, onAllow, answer, title, label, children } = props;
  const meant = React.useRef(true);
  return (
    <Button
      mood={mood}
      blocked={!ready}
      title={title}
      aria-label={label}
      data-reply={answer}
      onPointerDown={() => {
        meant.current = ready;
      }}
      onKeyDown={event => {
        meant.current = ready && !event.repeat;
        if (event.repeat) {
          event.preventDefault();
        }
      }}
      // A press that leaves the button is over without a click.
      onPointerLeave={() => {
        meant.current = true;
      }}
      onClick={() => {
        const isMeant = meant.current;
        meant.current = true;
        if (isMeant) {
          onAllow();
        }
      }}
    >
      {children}
    </Button>
  );
}

export function SendingText({ known, isLive, trans }: FormProps): JSX.Element {
  return (
    <span className="ocman-Ask-sending">
      {known.phase === 'sending' ? trans.__('Sending…') : isLive ? '' : trans.__('Not connected.')}
    </span>
  );
}

export function ReplyError(props: FormProps & { retry: (() => void) | null }): JSX.Element | null {
  const { known, isLive, settled, trans, retry } = props;
  return known.error ? (
    <div className="ocman-Composer-problem">
      <ErrorText error={known.error} />
      {retry && (
        <Button blocked={!isLive || !settled} onClick={retry}>
          {trans.__('Retry')}
        </Button>
      )}
    </div>
  ) : null;
}

/** Answers an ask; `retry` gives the last answer again. */
export function useReply({ model, askKey }: FormProps): {
  reply: (reply: AskReply) => void;
  retry: (() => void) | null;
} {
  const last = React.useRef<AskReply | null>(null);
  const reply = (answer: AskReply) => {
    last.current = answer;
    void model.reply(askKey, answer);
  };
  return { reply, retry: last.current && (() => reply(last.current!)) };
}

/**
 * When the element goes away while it has the focus, what `next` finds in the tab takes the focus over.
 *
 * A form gives it to the dock: there a key that was meant for the form does nothing, in a text it would.
 */
export function useHandedFocus<E extends HTMLElement>(next: string): React.RefObject<E> {
  const element = React.useRef<E>(null);
  React.useLayoutEffect(
    () => () => {
      const tab = element.current?.closest<HTMLElement>(TAB);
      if (tab && element.current?.contains(document.activeElement)) {
        requestAnimationFrame(() => {
          if (!document.activeElement || document.activeElement === document.body) {
            tab.querySelector<HTMLElement>(next)?.focus();
          }
        });
      }
    },
    []
  );
  return element;
}
