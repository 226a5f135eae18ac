// The head and the row with which a typed sentence opens, chosen as transformer/heads/telling_cell.py does. Of a class it
// takes the word that the heads agree on, not the one without which the class is least probable: that takes a run each.

const LETTERS = 3; // of a token that most likely means something by itself
const CONTENT_LETTERS = 4; // and of a content word
const CLEAR = 0.5; // of a row: least weight on the key that all agree on
const AGREED = 0.3; // least mean weight with which the heads of a layer name the source of a word

const lettersIn = (text) => text.match(/\p{L}/gu)?.length ?? 0;
const isWord = ({ special, text }) => !special && lettersIn(text) >= LETTERS;

// The number of letters of a token that has nothing else but the space before it, otherwise 0.
function bareLetters(display) {
  const bare = display.replace(/^·/, "");
  return /^\p{L}+$/u.test(bare) ? [...bare].length : 0;
}

const indexOfMost = (values) => values.reduce((best, value, k) => (value > values[best] ? k : best), 0);

class Search {
  constructor(figures) {
    const { run, model } = figures;
    Object.assign(this, { figures, run, described: model.described });
    this.stack = model.writes ? "decoder" : "encoder";
    this.kind = model.reads && model.writes ? "cross" : "self";
    this.keys = run.stacks[this.kind === "cross" ? "encoder" : this.stack];
  }

  // Of every head: the row, 0 where the mask forbids a key.
  rowsOf(layer, row) {
    const { stack, kind, figures, keys } = this;
    const { values } = figures.outputs[`${stack}.${kind}.allowed`];
    const from = (layer * this.run.stacks[stack].length + row) * keys.length;
    return Array.from({ length: this.described.heads }, (_, head) =>
      Array.from(figures.weightsOf({ stack, kind, layer, head, row }).subarray(0, keys.length), (weight, k) =>
        values[from + k] ? weight : 0,
      ),
    );
  }

  mean(layer, row) {
    const rows = this.rowsOf(layer, row);
    return this.keys.map((_, k) => rows.reduce((sum, one) => sum + one[k], 0) / rows.length);
  }

  followed(layer) {
    const { run, described, stack } = this;
    if (described.picture && described.classes.length) return [0];
    const { positions, everywhere } = this.figures.rows();
    if (described.classes.length || !positions.length) {
      const words = run.stacks[stack].map((token, k) => (isWord(token) ? k : -1)).filter((k) => k >= 0);
      return words.length ? words : [0];
    }
    if (everywhere) return [this.mostExpected(positions)];
    const content = positions.filter((row) => bareLetters(run.prediction[row].text) >= CONTENT_LETTERS);
    for (const row of this.kind === "cross" ? content : []) {
      const weights = this.mean(layer, row);
      const key = indexOfMost(weights);
      const { text: source } = this.keys[key];
      if (weights[key] > AGREED && source !== run.prediction[row].text && bareLetters(source) >= CONTENT_LETTERS)
        return [row];
    }
    return [content[0] ?? positions[0]];
  }

  // The row that predicts a word with the largest probability.
  mostExpected(positions) {
    const { outputs, model } = this.figures;
    const { values: ids, shape } = outputs["candidates.ids"];
    const { values: probabilities } = outputs["candidates.probabilities"];
    const words = positions.filter((row) => bareLetters(model.text.display(ids[row * shape[1]])) >= LETTERS);
    return words.length ? words[indexOfMost(words.map((row) => probabilities[row * shape[1]]))] : positions[0];
  }

  rank(token) {
    if ((this.described.picture && !token.special) || isWord(token)) return 2;
    return Number(!token.special && lettersIn(token.text) > 0);
  }

  cell(rows, layers) {
    const found = [];
    for (const row of rows)
      for (const layer of layers) {
        const weights = this.mean(layer, row);
        if (this.kind === "self") weights[row] = 0; // the picture names another token
        const key = indexOfMost(weights);
        found.push([this.rank(this.keys[key]), weights[key], -layer, row, key]);
      }
    const order = (a, b) => a.reduce((first, value, k) => first || value - b[k], 0);
    const [, , before, row, key] = found.reduce((best, one) => (order(one, best) > 0 ? one : best));
    const heads = this.rowsOf(-before, row);
    const mostly = [...heads.keys()].filter((head) => indexOfMost(heads[head]) === key);
    const listed = mostly.length ? mostly : [...heads.keys()];
    const head = listed.reduce((best, one) => (heads[one][key] > heads[best][key] ? one : best));
    const clear = [...heads.keys()].filter((one) => heads[one][key] >= CLEAR);
    return { stack: this.stack, kind: this.kind, layer: -before, head, token: row, clear };
  }
}

// -> the place, and the heads that are `clear` about it; `layer`: of the opening, whose heads align words
export function tellingCell(figures, layer) {
  const search = new Search(figures);
  const count = figures.model.described.layers[search.stack];
  const aligned = Math.min(layer, count - 1);
  return search.cell(search.followed(aligned), search.kind === "cross" ? [aligned] : [...Array(count).keys()]);
}
