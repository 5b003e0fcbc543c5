/**
 * "Needs you": the asks of all sessions, answered in place.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { OcmanModel } from '../model';
import { PermissionReply, Question } from '../records';
import { KnownAsk, keyOf } from '../state';
import { Button, ErrorText, Foreign } from './button';
import { useSettled } from './hooks';
import { worktreeOf } from './rows';
import { age, alwaysPatterns, askText, outcomeText, worktreeTitle } from './words';

/** A click or keystroke that was meant for something else allows nothing, in milliseconds. */
export const SETTLE = 350;

interface Props {
  model: OcmanModel;
  trans: TranslationBundle;
  now: number;
  isLive: boolean;
  onShow: (sessionKey: string) => void;
}

export function NeedsYou(props: Props): JSX.Element | null {
  const { model, trans } = props;
  const asks = [...model.state.asks];
  // A new ask moves the others, and so does one that is over and shrinks: all settle anew, so that the pointer cannot
  // meet another ask than the one that was read.
  const places = asks.map(([key, { phase }]) => `${key} ${phase === 'done'}`).join('\n');
  const settled = useSettled(places, SETTLE);
  if (!asks.length) {
    return null;
  }
  const open = asks.filter(([, known]) => known.phase !== 'done').length;
  return (
    <section className="ocman-Needs" aria-label={trans.__('Needs you')}>
      <h2 className="ocman-SectionTitle">
        {trans.__('Needs you')}
        <span className="ocman-Count">{open}</span>
      </h2>
      <ul className="ocman-Needs-list" aria-label={trans.__('Needs your answer')}>
        {asks.map(([key, known]) => (
          <AskItem key={key} askKey={key} known={known} settled={settled} {...props} />
        ))}
      </ul>
    </section>
  );
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
          onClick={reply('once')}
          aria-label={trans.__('Allow once, %1, %2', name, object)}
        >
          {trans.__('Once')}
        </Button>
        {always.length > 0 && (
          <Button
            blocked={!idle || !settled}
            onClick={reply('always')}
            title={always.join('\n')}
            aria-label={trans.__('Allow always %1, %2', always.join(', '), name)}
          >
            {trans.__('Always')} <bdi className="ocman-Pattern">{always.join(', ')}</bdi>
          </Button>
        )}
        <Button
          blocked={!idle}
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
  const [answers, setAnswers] = React.useState<readonly (readonly string[])[]>(() => questions.map(() => []));
  const idle = known.phase === 'open' && isLive;
  const complete = answers.every(answer => answer.some(label => label.trim()));
  const answer = (index: number, labels: string[]) =>
    setAnswers(answers.map((old, i) => (i === index ? labels : old)));
  return (
    <>
      {questions.map((question, i) => (
        <QuestionField
          key={i}
          name={`ocman-${id}-${i}`}
          question={question}
          answer={answers[i]}
          onAnswer={labels => answer(i, labels)}
          trans={trans}
        />
      ))}
      <div className="ocman-Ask-buttons">
        <Button
          mood="accept"
          blocked={!idle || !complete}
          onClick={() =>
            void model.reply(askKey, { answers: answers.map(labels => labels.filter(label => label.trim())) })
          }
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

function QuestionField(props: {
  name: string;
  question: Question;
  answer: readonly string[];
  onAnswer: (labels: string[]) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { name, question, answer, onAnswer, trans } = props;
  const labels = (question.options ?? []).map(option => option.label);
  const own = answer.find(label => !labels.includes(label)) ?? '';
  const choose = (label: string, chosen: boolean) => {
    const others = question.multiple ? answer.filter(one => one !== label) : [];
    onAnswer(chosen ? [...others, label] : others);
  };
  return (
    <fieldset className="ocman-Question">
      <legend dir="auto">{question.question}</legend>
      {(question.options ?? []).map(option => (
        <label key={option.label} title={option.description}>
          <input
            type={question.multiple ? 'checkbox' : 'radio'}
            name={name}
            checked={answer.includes(option.label)}
            onChange={event => choose(option.label, event.target.checked)}
          />
          <bdi>{option.label}</bdi>
        </label>
      ))}
      {question.custom !== false && (
        <input
          type="text"
          className="ocman-Input"
          value={own}
          placeholder={trans.__('In your own words')}
          aria-label={trans.__('Own answer to: %1', question.question)}
          onChange={event => {
            const chosen = question.multiple ? answer.filter(label => labels.includes(label)) : [];
            onAnswer(event.target.value ? [...chosen, event.target.value] : chosen);
          }}
        />
      )}
    </fieldset>
  );
}
