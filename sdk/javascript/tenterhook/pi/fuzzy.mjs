// Fuzzy search: the characters of the query have to occur in order. A lower score is a better match.

const isStart = (text, at) => at === 0 || /[\s\-_./:]/.test(text[at - 1]);

function score(query, text) {
  let total = 0;
  let run = 0;
  let last = -1;
  let from = 0;
  for (const character of query) {
    const at = text.indexOf(character, from);
    if (at < 0) return undefined;
    run = last >= 0 && at === last + 1 ? run + 1 : 0;
    if (run > 0) total -= 5 * run;
    else if (last >= 0) total += 2 * (at - last - 1);
    if (isStart(text, at)) total -= 10;
    total += at / 10;
    last = at;
    from = at + 1;
  }
  return total;
}

/** Returns whether text matches a query, and how well. */
export function fuzzyMatch(query, text) {
  const [wanted, within] = [query.toLowerCase(), text.toLowerCase()];
  const found = score(wanted, within);
  if (found !== undefined) return { matches: true, score: found };
  // `gpt5` also finds `5-gpt`.
  const [, letters, digits] = /^([a-z]+)(\d+)$/.exec(wanted) ?? [];
  const [, digitsFirst, lettersLast] = /^(\d+)([a-z]+)$/.exec(wanted) ?? [];
  const swapped = letters ? digits + letters : digitsFirst && lettersLast + digitsFirst;
  const other = swapped && score(swapped, within);
  return typeof other === 'number' ? { matches: true, score: other + 5 } : { matches: false, score: 0 };
}

/** Returns the items that match all words of a query, the best match first. */
export function fuzzyFilter(items, query, getText) {
  const words = query.split(/\s+/).filter(Boolean);
  if (words.length === 0) return items;
  const found = [];
  for (const item of items) {
    const matches = words.map((word) => fuzzyMatch(word, getText(item)));
    if (matches.every((it) => it.matches))
      found.push({ item, score: matches.reduce((sum, it) => sum + it.score, 0) });
  }
  return found.sort((one, other) => one.score - other.score).map(({ item }) => item);
}
