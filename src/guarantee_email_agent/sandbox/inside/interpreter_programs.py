"""The programs that keep an interpreter's state from one piece of code to the next.

Each reads lines of JSON, `{"number", "code"}`, from what was its standard input, and writes a line of JSON for each to
descriptor 4: `{"number", "status", "outputs"}`, the outputs as Jupyter's messages have them.
"""

from __future__ import annotations

from typing import Final

_PYTHON: Final = r"""
import ast, builtins, inspect, json, linecache, os, signal, sys, traceback, types
requests, replies = os.fdopen(os.dup(0), "rb"), os.dup(4)
os.close(4)
nothing = os.open("/dev/null", os.O_RDONLY)
os.dup2(nothing, 0)
os.close(nothing)
main = sys.modules["__main__"] = types.ModuleType("__main__")
main.__builtins__ = builtins
sys.argv = [""]
LONGEST = 1 << 20
KINDS = {"_repr_html_": "text/html", "_repr_markdown_": "text/markdown", "_repr_latex_": "text/latex",
         "_repr_svg_": "image/svg+xml"}
outputs, loop = [], None
def data_of(value):
    data = {"text/plain": repr(value)[:LONGEST]}
    for name, kind in KINDS.items():
        method = None if isinstance(value, type) else getattr(value, name, None)
        text = method() if callable(method) else None
        if isinstance(text, str):
            data[kind] = text[:LONGEST]
    return data
def display(*values):
    for value in values:
        outputs.append({"output_type": "display_data", "data": data_of(value), "metadata": {}})
main.display = display
def evaluate(code):
    global loop
    value = eval(code, main.__dict__)
    if code.co_flags & inspect.CO_COROUTINE:
        import asyncio
        loop = loop or asyncio.new_event_loop()
        value = loop.run_until_complete(value)
    return value
def run(number, text):
    name = f"<cell {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    def compiled(tree, mode):
        return compile(tree, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
    tree = compile(text, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    evaluate(compiled(tree, "exec"))
    if last is not None:
        value = evaluate(compiled(ast.Expression(last.value), "eval"))
        if value is not None:
            main._ = value
            result = {"output_type": "execute_result", "data": data_of(value), "metadata": {}}
            outputs.append(result | {"execution_count": number})
def ignore(*_):
    pass
while line := requests.readline():
    request = json.loads(line)
    outputs, status = [], "ok"
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            run(request["number"], request["code"])
        finally:
            signal.signal(signal.SIGINT, ignore)
    except BaseException as error:
        place = error.__traceback__
        while place is not None and place.tb_frame.f_code.co_filename == "<string>":
            place = place.tb_next
        try:
            lines = "".join(traceback.format_exception(type(error), error, place))[:LONGEST].splitlines()
            evalue = str(error)[:LONGEST]
        except BaseException:
            lines, evalue = [type(error).__name__], ""
        status = "error"
        ename = type(error).__name__
        outputs.append({"output_type": "error", "ename": ename, "evalue": evalue, "traceback": lines})
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    reply = json.dumps({"number": request["number"], "status": status, "outputs": outputs}).encode() + b"\n"
    while reply:
        reply = reply[os.write(replies, reply):]
"""

_JAVASCRIPT: Final = r"""
const fs = require('fs'), readline = require('readline'), util = require('util'), vm = require('vm');
const LONGEST = 1 << 20;
globalThis.require = require('module').createRequire(process.cwd() + '/');
let interrupt = () => {};
process.on('SIGINT', () => interrupt(new Error('interrupted')));
process.on('uncaughtException', error => console.error(error));
function compile(code, filename) {
  // `await` outside a function is none for a script; what it declares has to last beyond the function around it.
  const lasting = code.replace(/^(?:const|let|var)\s+(?=[\w$]+\s*=)/gm, '');
  let problem;
  for (const text of [code, `(async () => (${code}\n))()`, `(async () => {${lasting}\n})()`]) {
    try {
      return new vm.Script(text, { filename });
    } catch (error) {
      problem = problem || error;
      if (!/\bawait\b/.test(code)) break;
    }
  }
  throw problem;
}
async function run(number, code) {
  try {
    const interrupted = new Promise((_, reject) => { interrupt = reject; });
    const script = compile(code, `cell ${number}`);
    const value = await Promise.race([script.runInThisContext({ breakOnSigint: true }), interrupted]);
    if (value === undefined) return { status: 'ok', outputs: [] };
    const data = { 'text/plain': util.inspect(value).slice(0, LONGEST) };
    const output = { output_type: 'execute_result', data, metadata: {}, execution_count: number };
    return { status: 'ok', outputs: [output] };
  } catch (error) {
    const isError = util.types.isNativeError(error);
    const trace = String(isError ? error.stack : util.inspect(error)).slice(0, LONGEST);
    const own = trace.split('\n').filter(line => !line.includes('[eval]') && !line.includes('node:'));
    const evalue = String(isError ? error.message : util.inspect(error)).slice(0, LONGEST);
    const output = { output_type: 'error', ename: isError ? String(error.name) : 'Error', evalue, traceback: own };
    return { status: 'error', outputs: [output] };
  } finally {
    interrupt = () => {};
  }
}
const lines = readline.createInterface({ input: fs.createReadStream(null, { fd: 0 }) });
lines.on('line', async line => {
  const { number, code } = JSON.parse(line);
  const reply = Buffer.from(JSON.stringify({ number, ...await run(number, code) }) + '\n');
  for (let at = 0; at < reply.length;) at += fs.writeSync(4, reply, at);
});
lines.on('close', () => process.exit());
"""

PYTHON: Final = ("-c", _PYTHON)
JAVASCRIPT: Final = ("-e", _JAVASCRIPT)
