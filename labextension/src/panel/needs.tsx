/**
 * "Needs you": the asks of all sessions, answered in place.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { alwaysPatterns, askText, outcomeText } from '../asks';
import { OcmanModel } from '../model';
import { QuestionFields, isComplete, labelsOf, noAnswers } from '../questions';
import { PermissionReply } from '../records';
import { KnownAsk, keyOf } from '../state';
import { Button, ErrorText, Foreign } from './button';
import { useSettled } from './hooks';
import { worktreeOf } from './rows';
import { age, worktreeTitle } from './words';

interface Props {
  model: OcmanModel;
  trans: TranslationBundle;
  now: number;
  isLive: boolean;
  /** How long an ask must have stood before it can be allowed, in milliseconds. */
  settleTime: number;
  onShow: (sessionKey: string) => void;
}

export function NeedsYou(props: Props): JSX.Element | null {
  const { model, trans, settleTime } = props;
  const asks = [...model.state.asks];
  // A new ask moves the others, and so does one that is over and shrinks: all settle anew, so that the pointer cannot
  // meet another ask than the one that was read.
  const places = asks.map(([key, { phase }]) => `${key} ${phase === 'done'}`).join('\n');
  const settled = useSettled(places, settleTime);
  const section = React.useRef<HTMLElement>(null);
  const focus = useKeptFocus(section);
  if (!asks.length) {
    return null;
  }
  const open = asks.filter(([, known]) => known.phase !== 'done').length;
  return (
    <section ref={section} className="ocman-Needs" aria-label={trans.__('Needs you')} {...focus}>
      <h2 className="ocman-SectionTitle">
        {open ? trans.__('Needs you') : trans.__('Answered')}
        {open > 0 && <span className="ocman-Count">{open}</span>}
      </h2>
      <ul className="ocman-Needs-list" aria-label={trans.__('Needs your answer')}>
        {asks.map(([key, known]) => (
          <AskItem key={key} askKey={key} known={known} settled={settled} {...props} />
        ))}
      </ul>
    </section>
  );
}

/** An answered ask takes its buttons away: the focus goes to the next ask, and to the tree after the last. */
function useKeptFocus(section: React.RefObject<HTMLElement>) {
  const hadFocus = React.useRef(false);
  const panel = React.useRef<HTMLElement | null>(null);
  React.useLayoutEffect(() => {
    panel.current = section.current?.closest<HTMLElement>('.ocman-Panel') ?? panel.current;
    if (hadFocus.current && document.activeElement === document.body) {
      const next =
        section.current?.querySelector<HTMLElement>('.ocman-Ask:not(.ocman-mod-done) .ocman-Ask-head:enabled') ??
        section.current?.querySelector<HTMLElement>('.ocman-Ask-head:enabled') ??
        panel.current?.querySelector<HTMLElement>('.ocman-Row[tabindex="0"]');
      next?.focus();
      hadFocus.current = section.current !== null;
    }
  });
  return {
    onFocus: () => void (hadFocus.current = true),
    onBlur: (event: React.FocusEvent) => {
      const left = event.target;
      setTimeout(() => {
        // A button that went away took the focus with it; that is not the user leaving.
        hadFocus.current = !left.isConnected || !!section.current?.contains(document.activeElement);
      });
    }
  };
}

/** The worktree and the title that tell an ask's session. */
function subjectOf(
  { model }: Props,
  { ask }: KnownAsk
): { sessionKey: string | null; name: string; title: string } {
  const sessionKey = keyOf(ask.host, ask.session_id);
  const session = model.state.sessions.get(sessionKey);
  const worktree = session && worktreeOf(model.state, session);
  return {
    sessionKey: session ? sessionKey : null,
    name: worktree ? worktreeTitle(worktree) : ask.title,
    title: ask.title
  };
}

function AskItem(props: Props & { askKey: string; known: KnownAsk; settled: boolean }): JSX.Element {
  const { known, trans, now, onShow } = props;
  const { ask, phase } = known;
  const subject = subjectOf(props, known);
  const { deed, object } = askText(ask, trans);
  return (
    <li className={`ocman-Ask ocman-mod-${phase}`} data-ask={ask.id}>
      <button
        type="button"
        className="ocman-Ask-head"
        disabled={subject.sessionKey === null}
        title={trans.__('Show the session')}
        onClick={() => subject.sessionKey && onShow(subject.sessionKey)}
      >
        <span className="ocman-Ask-mark" aria-hidden="true">
          {ask.kind === 'question' ? '?' : '!'}
        </span>
        <Foreign className="ocman-Ask-name" text={subject.name} />
        {subject.title !== subject.name && <Foreign className="ocman-Ask-title" text={subject.title} />}
        <span className="ocman-Row-age">{age(ask.created, now, trans)}</span>
      </button>
      {ask.kind === 'permission' && (
        <div className="ocman-Ask-what">
          {deed} <code dir="auto">{object}</code>
        </div>
      )}
      {phase === 'done' ? (
        <div className="ocman-Ask-outcome">{outcomeText(known, trans)}</div>
      ) : ask.kind === 'question' ? (
        <Questions {...props} name={subject.name} />
      ) : (
        <Permission {...props} name={subject.name} object={object} />
      )}
      {known.error && <ErrorText error={known.error} />}
    </li>
  );
}

interface AnswerProps extends Props {
  askKey: string;
  known: KnownAsk;
  settled: boolean;
  name: string;
}

function Permission(props: AnswerProps & { object: string }): JSX.Element {
  const { model, askKey, known, trans, settled, isLive, name, object } = props;
  const always = alwaysPatterns(known.ask);
  const idle = known.phase === 'open' && isLive;
  const reply = (reply: PermissionReply) => () => void model.reply(askKey, { reply });
  return (
    <>
      {always.length > 0 && (
        <div className="ocman-Ask-always">
          {trans.__('Always would allow')} <code dir="auto">{always.join(', ')}</code>{' '}
          {trans.__('in this worktree, until OpenCode restarts.')}
        </div>
      )}
      <div className="ocman-Ask-buttons">
        <Button
          mood="accept"
          blocked={!idle || !settled}
          data-reply="once"
          onClick={reply('once')}
          aria-label={trans.__('Allow once, %1, %2', name, object)}
        >
          {trans.__('Once')}
        </Button>
        {always.length > 0 && (
          <Button
            blocked={!idle || !settled}
            data-reply="always"
            onClick={reply('always')}
            title={always.join('\n')}
            aria-label={trans.__('Allow always %1, %2', always.join(', '), name)}
          >
            {trans.__('Always')} <bdi className="ocman-Pattern">{always.join(', ')}</bdi>
          </Button>
        )}
        <Button
          blocked={!idle}
          data-reply="reject"
          onClick={reply('reject')}
          aria-label={trans.__('Reject, %1, %2', name, object)}
        >
          {trans.__('Reject')}
        </Button>
        {known.phase === 'sending' && <span className="ocman-Ask-sending">{trans.__('Sending…')}</span>}
      </div>
    </>
  );
}

function Questions(props: AnswerProps): JSX.Element {
  const { model, askKey, known, trans, isLive, name } = props;
  const { questions, id } = known.ask;
  const [answers, setAnswers] = React.useState(() => noAnswers(questions));
  const idle = known.phase === 'open' && isLive;
  return (
    <>
      <QuestionFields
        name={`ocman-${id}`}
        questions={questions}
        answers={answers}
        onAnswers={setAnswers}
        trans={trans}
      />
      <div className="ocman-Ask-buttons">
        <Button
          mood="accept"
          blocked={!idle || !isComplete(answers)}
          onClick={() => void model.reply(askKey, { answers: labelsOf(answers) })}
          aria-label={trans.__('Answer, %1', name)}
        >
          {trans.__('Answer')}
        </Button>
        <Button
          blocked={!idle}
          onClick={() => void model.reply(askKey, { reply: 'reject' })}
          aria-label={trans.__('Dismiss the question, %1', name)}
        >
          {trans.__('Dismiss')}
        </Button>
        {known.phase === 'sending' && <span className="ocman-Ask-sending">{trans.__('Sending…')}</span>}
      </div>
    </>
  );
}
