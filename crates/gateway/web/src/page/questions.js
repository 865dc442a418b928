// Draws open questions: whether a tool call may run, and questions of scripts. They stay above the message field.

import { element, icon } from './element.js';

const CHOICES = { allow: 'Allow once', allow_session: 'Allow for this session', deny: 'Deny' };

export class Questions {
  #cards = new Map();

  /** `onanswer` gets a question and the fields of the answer. */
  constructor({ list, onanswer }) {
    Object.assign(this, { list, onanswer });
    setInterval(() => this.#tick(), 10_000);
  }

  show(questions, isOnline) {
    for (const [question, card] of this.#cards) {
      if (questions.includes(question)) continue;
      const hadFocus = card.contains(document.activeElement);
      card.remove();
      this.#cards.delete(question);
      if (hadFocus) document.querySelector('#input').focus();
    }
    for (const question of questions) {
      if (!this.#cards.has(question)) this.#add(question);
      const fields = this.#cards.get(question).querySelector('fieldset');
      fields.disabled = question.isAnswered || !isOnline;
    }
    this.#tick();
  }

  #add(question) {
    const answer = (fields) => this.onanswer(question, fields);
    const card = question.kind === 'approve' ? approval(question, answer) : scriptQuestion(question.question, answer);
    card.querySelector('.head').append(element('span', { class: 'expires' }));
    this.#cards.set(question, card);
    this.list.append(card);
  }

  #tick() {
    for (const [question, card] of this.#cards) {
      const seconds = question.expires - Date.now() / 1000;
      const minutes = Math.ceil(seconds / 60);
      const text = seconds <= 0 ? 'expired' : seconds < 60 ? 'less than a minute left' : `${minutes} min left`;
      card.querySelector('.expires').textContent = question.expires ? text : '';
    }
  }
}

function card(title, symbol, ...content) {
  const head = element('div', { class: 'head' }, icon(symbol), element('h2', { dir: 'auto' }, ...title));
  return element('form', { class: 'question' }, head, element('fieldset', {}, ...content));
}

function approval(question, answer) {
  const reason = element('input', {
    type: 'text', class: 'reason', dir: 'auto',
    placeholder: 'Reason for denying (optional)', 'aria-label': 'Reason for denying',
  });
  const deny = () => answer({ type: 'approve', choice: 'deny', ...(reason.value ? { reason: reason.value } : {}) });
  const buttons = question.choices.map((choice) => element('button', {
    type: 'button',
    class: choice === 'allow' ? 'primary' : choice === 'deny' ? 'danger' : '',
    onclick: () => (choice === 'deny' ? deny() : answer({ type: 'approve', choice })),
  }, CHOICES[choice] ?? choice));
  const asked = question.card;
  const title = ['Allow ', element('code', {}, asked.tool), '?'];
  const fact = (name, text) => text && element('p', { class: 'why', dir: 'ltr' }, `${name}: ${text}`);
  const node = card(title, 'shield',
    element('pre', { tabindex: '0', dir: 'ltr', 'aria-label': 'What would run' }, asked.command),
    fact('Length', `${asked.length} ${asked.length === 1 ? 'character' : 'characters'}`),
    fact('Other arguments', asked.arguments),
    fact('Asked by', asked.asked_by),
    fact('Chat', asked.chat),
    fact('Why', asked.why),
    element('div', { class: 'buttons' }, ...buttons, question.choices.includes('deny') && reason));
  // Enter in the field for the reason denies; it never allows.
  node.addEventListener('submit', (event) => {
    event.preventDefault();
    deny();
  });
  return node;
}

function scriptQuestion(question, reply) {
  const answer = (text) => reply({ type: 'answer', text });
  const button = (label, text, style) => (
    element('button', { type: 'button', class: style, onclick: () => answer(text) }, label));
  const dismiss = () => button('Dismiss', null, 'quiet');
  const field = { type: 'text', dir: 'auto', 'aria-label': question.title, placeholder: question.placeholder };
  const input = question.kind === 'editor'
    ? element('textarea', { ...field, type: null, rows: '6' }, question.text)
    : element('input', field);
  const content = {
    confirm: () => [
      element('p', { class: 'why', dir: 'auto' }, question.message),
      element('div', { class: 'buttons' }, button('Yes', 'yes', 'primary'), button('No', 'no'), dismiss())],
    select: () => [
      element('div', { class: 'buttons' }, ...question.options.map((option) => button(option, option)), dismiss())],
  };
  const text = () => [
    input, element('div', { class: 'buttons' }, element('button', { class: 'primary' }, 'Answer'), dismiss())];
  const node = card([question.title], 'hook', ...(content[question.kind] ?? text)());
  node.addEventListener('submit', (event) => {
    event.preventDefault();
    if (input.isConnected) answer(input.value);
  });
  return node;
}
