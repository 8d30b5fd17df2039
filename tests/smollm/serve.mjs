// A small language model behind OpenAI's chat completions, on loopback: `node serve.mjs MODEL.gguf`.
//
// Genuine tokens for smoke tests, by node-llama-cpp (https://node-llama-cpp.withcat.ai). The first line that it prints
// is its base URL; then one line of JSON for each request: tokens read and written, seconds. What it knows:
//
// - messages of system, developer, user and assistant; usage in the model's own tokens
// - response_format json_schema: a grammar lets the model write nothing else
// - max_tokens (or max_completion_tokens), temperature; finish_reason "stop" and "length"
// - a conversation longer than the context: 400 context_length_exceeded; tools: 400, as models without them answer
//
// One thread: several that wait for each other in turns are a thousand times slower on a machine that is busy.

import {createServer} from "node:http";
import {basename} from "node:path";
import {LlamaChat, getLlama} from "node-llama-cpp";

const CONTEXT = Number(process.env.SMOLLM_CONTEXT ?? 4096);
const SEED = 7;
const MOST_BYTES = 4_000_000;
const ROLES = {system: "system", developer: "system", user: "user", tool: "user", assistant: "model"};

const file = process.argv[2];
const name = basename(file, ".gguf").toLowerCase();
const llama = await getLlama({gpu: false, build: "never", maxThreads: 1, progressLogs: false});
const model = await llama.loadModel({modelPath: file});
const context = await model.createContext({contextSize: CONTEXT, threads: 1});
const sequence = context.getSequence();
const chat = new LlamaChat({contextSequence: sequence});
const grammars = new Map();

class Refused extends Error {
    constructor(message, {status = 400, code = null, param = null} = {}) {
        super(message);
        this.status = status;
        this.answer = {error: {message, type: "invalid_request_error", param, code}};
    }
}

function historyOf(messages) {
    if (!Array.isArray(messages) || messages.length === 0) throw new Refused("messages are missing", {param: "messages"});
    const told = messages.map(({role, content}) => {
        const type = ROLES[role];
        if (type === undefined) throw new Refused(`Invalid value: '${role}'`, {param: "messages"});
        const text = typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");
        return type === "model" ? {type, response: [text]} : {type, text};
    });
    return [...told, {type: "model", response: []}];
}

async function grammarOf(form) {
    if (form?.type !== "json_schema") return undefined;
    const key = JSON.stringify(form.json_schema.schema);
    if (!grammars.has(key)) grammars.set(key, await llama.createGrammarForJsonSchema(form.json_schema.schema));
    return grammars.get(key);
}

async function complete(asked, signal) {
    if (asked.tools !== undefined) throw new Refused(`${name} does not support tools`, {param: "tools"});
    const history = historyOf(asked.messages);
    const {contextText} = chat.chatWrapper.generateContextState({chatHistory: history});
    const read = contextText.tokenize(model.tokenizer).length;
    const most = asked.max_tokens ?? asked.max_completion_tokens ?? 256;
    if (read + most > CONTEXT) {
        const message = `This model's maximum context length is ${CONTEXT} tokens. However, you requested ` +
            `${read + most} tokens (${read} in the messages, ${most} in the completion).`;
        throw new Refused(message, {code: "context_length_exceeded", param: "messages"});
    }
    const before = sequence.tokenMeter.getState();
    const made = await chat.generateResponse(history, {
        maxTokens: most,
        temperature: asked.temperature ?? 0,
        seed: SEED,
        grammar: await grammarOf(asked.response_format),
        signal,
        stopOnAbortSignal: true
    });
    const written = sequence.tokenMeter.diff(before).usedOutputTokens;
    return {
        id: `chatcmpl-${Date.now()}`,
        object: "chat.completion",
        created: Math.floor(Date.now() / 1000),
        model: name,
        choices: [{
            index: 0,
            message: {role: "assistant", content: made.response, refusal: null},
            logprobs: null,
            finish_reason: made.metadata.stopReason === "maxTokens" ? "length" : "stop"
        }],
        usage: {prompt_tokens: read, completion_tokens: written, total_tokens: read + written}
    };
}

async function bodyOf(request) {
    const parts = [];
    let size = 0;
    for await (const part of request) {
        size += part.length;
        if (size > MOST_BYTES) throw new Refused("the request is too large", {status: 413});
        parts.push(part);
    }
    try {
        return JSON.parse(Buffer.concat(parts).toString("utf8"));
    } catch {
        throw new Refused("We could not parse the JSON body of your request.");
    }
}

let turn = Promise.resolve(); // one conversation at a time

async function answer(request, response) {
    if (request.url === "/v1/models") return {object: "list", data: [{id: name, object: "model", created: 0, owned_by: "local"}]};
    if (request.method !== "POST" || request.url !== "/v1/chat/completions") throw new Refused("Not found", {status: 404});
    const asked = await bodyOf(request);
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const mine = turn.then(async () => {
        const began = Date.now();
        const made = await complete(asked, gone.signal);
        console.log(JSON.stringify({...made.usage, seconds: (Date.now() - began) / 1000}));
        return made;
    });
    turn = mine.catch(() => undefined);
    return mine;
}

const server = createServer(async (request, response) => {
    let status = 200, value;
    try {
        value = await answer(request, response);
    } catch (error) {
        status = error.status ?? 500;
        value = error.answer ?? {error: {message: String(error), type: "server_error", param: null, code: null}};
    }
    response.writeHead(status, {"Content-Type": "application/json"}).end(JSON.stringify(value));
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));
