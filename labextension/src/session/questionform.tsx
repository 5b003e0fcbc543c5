/**
 * An ask that is questions: one form for all of them.
 */
import * as React from 'react';
import { Button } from '../panel/button';
import { Answer, QuestionFields, isComplete, labelsOf } from '../questions';
import { DOCK, FormProps, ReplyError, SendingText, useHandedFocus, useReply } from './answering';

interface QuestionProps extends FormProps {
  answers: readonly Answer[];
  onAnswers: (answers: readonly Answer[]) => void;
}

export function QuestionForm(props: QuestionProps): JSX.Element {
  const { trans, known, name, isLive, answers, onAnswers } = props;
  const { ask, phase } = known;
  const form = useHandedFocus<HTMLDivElement>(DOCK);
  const { reply, retry } = useReply(props);
  const id = React.useId();
  const isIdle = phase === 'open' && isLive;
  const canAnswer = isIdle && isComplete(answers);
  const answer = () => reply({ answers: labelsOf(answers) });
  return (
    <div
      ref={form}
      className="ocman-Dock-ask"
      data-ask={ask.id}
      onKeyDown={event => {
        const isField = (event.target as HTMLElement).tagName === 'INPUT';
        if (event.key === 'Enter' && isField && !event.repeat && !event.nativeEvent.isComposing && canAnswer) {
          answer();
        }
      }}
    >
      <div className="ocman-Dock-facts">
        <QuestionFields
          name={id}
          described
          questions={ask.questions}
          answers={answers}
          onAnswers={onAnswers}
          trans={trans}
        />
      </div>
      <ReplyError {...props} retry={retry} />
      <div className="ocman-Ask-buttons">
        <Button
          mood="accept"
          blocked={!canAnswer}
          onClick={answer}
          aria-label={trans.__('Answer, %1', name)}
        >
          {trans.__('Answer')}
        </Button>
        <Button
          blocked={!isIdle}
          onClick={() => reply({ reply: 'reject' })}
          title={trans.__('Answer nothing, and end the turn')}
          aria-label={trans.__('Dismiss the question, %1', name)}
        >
          {trans.__('Dismiss')}
        </Button>
        <SendingText {...props} />
      </div>
    </div>
  );
}
