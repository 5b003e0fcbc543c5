/**
 * The questions of an ask as fields, and their answers.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { Question } from './records';

/** To one question: the labels of the chosen options, and what was written. */
export interface Answer {
  readonly chosen: readonly string[];
  readonly own: string;
}

export function noAnswers(questions: readonly Question[]): readonly Answer[] {
  return questions.map(() => ({ chosen: [], own: '' }));
}

/** The answers as the server takes them: the labels for each question. */
export function labelsOf(answers: readonly Answer[]): string[][] {
  return answers.map(({ chosen, own }) => [...chosen, own.trim()].filter(label => label));
}

/** Every question has an answer. */
export function isComplete(answers: readonly Answer[]): boolean {
  return labelsOf(answers).every(labels => labels.length > 0);
}

interface FieldsProps {
  /** Makes the groups of radio buttons this form's own. */
  name: string;
  questions: readonly Question[];
  answers: readonly Answer[];
  onAnswers: (answers: readonly Answer[]) => void;
  /** The options' descriptions are shown, not only tooltips. */
  described?: boolean;
  trans: TranslationBundle;
}

export function QuestionFields({ name, questions, answers, onAnswers, ...rest }: FieldsProps): JSX.Element {
  return (
    <>
      {questions.map((question, i) => (
        <QuestionField
          key={i}
          name={`${name}-${i}`}
          question={question}
          answer={answers[i]}
          onAnswer={answer => onAnswers(answers.map((old, j) => (j === i ? answer : old)))}
          {...rest}
        />
      ))}
    </>
  );
}

function QuestionField(props: {
  name: string;
  question: Question;
  answer: Answer;
  onAnswer: (answer: Answer) => void;
  described?: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { name, question, answer, onAnswer, described, trans } = props;
  const choose = (label: string, isChosen: boolean) => {
    const others = question.multiple ? answer.chosen.filter(one => one !== label) : [];
    const chosen = isChosen ? [...others, label] : others;
    // One option or own words, where only one answer is wanted.
    onAnswer({ chosen, own: question.multiple ? answer.own : '' });
  };
  return (
    <fieldset className="ocman-Question">
      <legend dir="auto">{question.question}</legend>
      {(question.options ?? []).map(option => (
        <label key={option.label} title={described ? undefined : option.description}>
          <input
            type={question.multiple ? 'checkbox' : 'radio'}
            name={name}
            checked={answer.chosen.includes(option.label)}
            onChange={event => choose(option.label, event.target.checked)}
          />
          <span>
            <bdi>{option.label}</bdi>
            {described && option.description && (
              <bdi className="ocman-Question-description">{option.description}</bdi>
            )}
          </span>
        </label>
      ))}
      {question.custom !== false && (
        <input
          type="text"
          className="ocman-Input"
          value={answer.own}
          placeholder={trans.__('In your own words')}
          aria-label={trans.__('Own answer to: %1', question.question)}
          onChange={event =>
            onAnswer({
              chosen: question.multiple || !event.target.value ? answer.chosen : [],
              own: event.target.value
            })
          }
        />
      )}
    </fieldset>
  );
}
