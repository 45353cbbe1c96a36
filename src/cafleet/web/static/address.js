// Whom a text is for: `@name text`, `@name#3 text` where names are not unique, `@#3 text`, `@all text`.

export const EVERYONE = "*";

const fold = (text) => text.toLocaleLowerCase();

/** What to write after the @ for a member: its name, with the id where the name alone is not enough. */
export function handleOf(member, members) {
  const name = fold(member.name);
  const shared = members.some((other) => other.member_id !== member.member_id && fold(other.name) === name);
  return shared || name === "all" ? `${member.name}#${member.member_id}` : member.name;
}

/**
 * `{to, label, text}`: `to` a member id or EVERYONE, `text` what follows; or `{error}` with a sentence.
 * The longest handle that fits wins, so that a name may begin with another one.
 */
export function parseAddressed(input, members) {
  if (!input.startsWith("@")) return { error: "Begin with @ and a name, or @all." };
  let best = { length: -1, targets: [] };
  const consider = (handle, to, label) => {
    const end = handle.length + 1;
    if (fold(input.slice(1, end)) !== fold(handle) || !/^\s?$/.test(input.slice(end, end + 1))) return;
    if (handle.length > best.length) best = { length: handle.length, targets: [] };
    if (handle.length === best.length) best.targets.push({ to, label });
  };
  consider("all", EVERYONE, "everyone");
  for (const member of members) {
    if (fold(member.name) !== "all") consider(member.name, member.member_id, member.name);
    consider(`${member.name}#${member.member_id}`, member.member_id, member.name);
    consider(`#${member.member_id}`, member.member_id, member.name);
  }
  if (best.targets.length === 0) return { error: "No active member has that name." };
  if (best.targets.length > 1) return { error: "Several members have that name; choose one from the list." };
  const [{ to, label }] = best.targets;
  return { to, label, length: best.length + 1, text: input.slice(best.length + 2) };
}

/** Members whose handle fits what was typed so far, best first; `all` among them as EVERYONE. */
export function suggestions(typed, members, limit) {
  const query = fold(typed);
  const everyone = { to: EVERYONE, handle: "all", label: "all", detail: "everyone in the fleet" };
  const items = members.map((member) => ({
    to: member.member_id,
    handle: handleOf(member, members),
    label: member.name,
    detail: [member.kind === "member" ? "" : member.kind, member.placement?.coding_agent ?? "", `id ${member.member_id}`]
      .filter(Boolean).join(" · "),
  }));
  const rank = (item) => {
    const at = fold(item.handle).indexOf(query);
    if (at === 0) return 0;
    return at > 0 || `#${item.to}` === query ? 1 : 2;
  };
  return [everyone, ...items]
    .map((item) => ({ item, rank: rank(item) }))
    .filter(({ rank: value }) => value < 2)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, limit)
    .map(({ item }) => item);
}
