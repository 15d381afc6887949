// csmd in OpenCode and its fork Kilo: reports prompts and ends of turns, and injects memories into the model's input.
// The file in the host's directory of plugins loads it. Nothing here throws, and no hook makes the host wait longer
// than WAIT_MS in all: text that comes later is not injected.
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const FOLDER = dirname(fileURLToPath(import.meta.url))
const WAIT_MS = 1500

// The result of a promise, or `otherwise` if it has none until the deadline.
const until = (deadline, promise, otherwise) => {
  let timer
  const late = new Promise((resolve) => (timer = setTimeout(resolve, Math.max(0, deadline - Date.now()), otherwise)))
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

// The output of the hook for an event. The host need not wait for it: the hook keeps the event.
const report = (host, event, payload) =>
  new Promise((resolve) => {
    let printed = ""
    const child = spawn(join(FOLDER, host), [event], { stdio: ["pipe", "pipe", "ignore"], detached: true })
    const end = () => resolve(printed)
    child.on("error", end)
    child.on("close", end)
    child.stdout.setEncoding("utf8").on("data", (text) => (printed += text))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
    child.unref()
  })

// An id that sorts directly after another part's id.
const after = (id) => {
  const time = (BigInt(`0x${id.slice(4, 16)}`) + 1n).toString(16).padStart(12, "0")
  return id.slice(0, 4) + time + id.slice(16)
}

// A hook that never throws; its first argument is its deadline.
const quietly = (hook) => async (...given) => {
  try {
    await hook(Date.now() + WAIT_MS, ...given)
  } catch {}
}

export const csmd = async ({ client, directory }, host) => {
  const data = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share")
  const database = join(data, host, `${host}.db`)
  const parents = new Map() // session -> the session that began it, "" if a person did
  const begun = new Set() // sessions that began in this process
  const briefs = new Map() // session -> the text injected at its start

  const ask = async (deadline, event, session, more) => {
    const payload = { session_id: session, cwd: directory, transcript_path: join(database, session), ...more }
    const printed = await until(deadline, report(host, event, payload), "")
    const answer = printed ? JSON.parse(printed) : {}
    if (answer.systemMessage)
      client.tui?.showToast?.({ body: { message: answer.systemMessage, variant: "info" } })?.catch?.(() => {})
    return answer.hookSpecificOutput?.additionalContext ?? ""
  }

  // True if unknown: an agent's words must not become the user's.
  const isAgents = async (deadline, session) => {
    if (!parents.has(session)) {
      const found = await until(deadline, client.session.get({ path: { id: session } }))
      if (!found?.data) return true
      parents.set(session, found.data.parentID ?? "")
    }
    return parents.get(session) !== ""
  }

  return {
    "chat.message": quietly(async (deadline, { sessionID }, { message, parts }) => {
      const typed = parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
      if (!typed.length || (await isAgents(deadline, sessionID))) return
      if (!briefs.has(sessionID)) {
        briefs.set(sessionID, "")
        const source = begun.has(sessionID) ? "startup" : "resume"
        briefs.set(sessionID, await ask(deadline, "SessionStart", sessionID, { source }))
      }
      const prompt = typed.map((part) => part.text).join("\n")
      const text = await ask(deadline, "UserPromptSubmit", sessionID, { prompt })
      if (text)
        parts.push({ id: after(parts.at(-1).id), sessionID, messageID: message.id, type: "text", text, synthetic: true })
    }),
    // The text of a slash command was written by its author, not the user: the mark is stored with the prompt.
    "command.execute.before": quietly(async (_, __, { parts }) => {
      for (const part of parts) if (part.type === "text") part.metadata = { ...part.metadata, csmd_command: true }
    }),
    "experimental.chat.system.transform": quietly(async (_, { sessionID }, { system }) => {
      const brief = briefs.get(sessionID)
      if (brief) system.push(brief)
    }),
    event: quietly(async (deadline, { event: { type, properties } }) => {
      const { info, sessionID } = properties ?? {}
      if (type === "session.created" || type === "session.updated") parents.set(info.id, info.parentID ?? "")
      if (type === "session.created") begun.add(info.id)
      if (type === "session.idle" && briefs.has(sessionID)) await ask(deadline, "Stop", sessionID, {})
      if (type === "session.compacted" && briefs.has(sessionID))
        briefs.set(sessionID, await ask(deadline, "SessionStart", sessionID, { source: "compact" }))
    }),
  }
}
