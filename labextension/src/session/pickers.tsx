/**
 * Which agent and which model the next prompts of a session go to.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { KnownSession } from '../state';
import { SessionChoices } from './completion';
import { Choice, Picker } from './picker';

export function Pickers(props: {
  session: KnownSession | null;
  choices: SessionChoices;
  agent: string | null;
  chosen: string | null;
  onChange: (chosen: { agent: string | null } | { model: string | null }) => void;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { session, choices, agent, chosen, onChange, trans } = props;
  const options = choices.value;
  const current = session?.model ?? options?.default_model ?? null;
  const models = React.useMemo(() => {
    const found: Choice[] = (options?.models ?? []).map(({ id, name, provider }) => ({
      value: id,
      name,
      group: provider
    }));
    const now = found.find(({ value }) => value === current)?.name ?? current;
    found.unshift({
      value: null,
      name: now ? trans.__('%1 (as before)', now) : trans.__('Default model'),
      group: ''
    });
    return found;
  }, [options, current, trans]);
  if (!options) {
    return choices.error ? (
      <button
        type="button"
        className="ocman-LinkButton"
        title={choices.error.message}
        onClick={() => void choices.load().catch(() => undefined)}
      >
        {trans.__('Agents and models are not known: try again')}
      </button>
    ) : null;
  }
  const agents = options.agents.map(({ name }) => name);
  return (
    <>
      <select
        className="ocman-Select"
        aria-label={trans.__('Agent')}
        title={options.agents.find(({ name }) => name === agent)?.description ?? trans.__('Agent')}
        value={agent ?? ''}
        onChange={event => onChange({ agent: event.target.value || null })}
      >
        <option value="">
          {session?.agent ? trans.__('%1 (as before)', session.agent) : trans.__('Default agent')}
        </option>
        {/* One that is gone is still what would be sent. */}
        {(agent && !agents.includes(agent) ? [...agents, agent] : agents).map(name => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <Picker
        label={trans.__('Model')}
        value={chosen}
        choices={models}
        onChoose={value => onChange({ model: value })}
        trans={trans}
      />
    </>
  );
}
