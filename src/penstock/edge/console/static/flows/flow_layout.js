// Places the nodes of a graph: layers from top to bottom, each in as many rows as the width takes.
//
// The order within the layers is computed once (`orderLayers`), the places for a width are cheap.

const SWEEPS = 4; // downwards and upwards; more hardly remove another crossing
const LONG_CHAIN = 5; // longer ones run from left to right, as text does

/** nodes: [{ id, layer, parents: [id] }], parents first.  Returns layers of ids, without gaps. */
export function orderLayers(nodes) {
  const layers = [];
  for (const layer of [...new Set(nodes.map((node) => node.layer))].sort((a, b) => a - b)) {
    layers.push(nodes.filter((node) => node.layer === layer).map((node) => node.id));
  }
  const above = new Map(nodes.map((node) => [node.id, node.parents]));
  const below = childrenOf(nodes);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    sortLayers(isDown ? layers : layers.toReversed(), isDown ? above : below);
  }
  return layers;
}

/** layers of ids; node: { width, height, gap, rowGap, layerGap }.  Returns { places, rows, height }. */
export function placeLayers(layers, width, node) {
  const places = new Map();
  const rows = [];
  const most = Math.max(1, Math.floor((width + node.gap) / (node.width + node.gap)));
  const placeRow = (row, left, y) => {
    row.forEach((id, n) => places.set(id, { x: left + n * (node.width + node.gap), y }));
    rows.push(row);
  };
  const widthOf = (many) => many * (node.width + node.gap) - node.gap;
  let y = 0;
  for (const { ids, isChain } of blocksOf(layers)) {
    // Rows of about the same length look better than a full one and a rest.
    const each = isChain ? most : Math.ceil(ids.length / Math.ceil(ids.length / most));
    const longest = widthOf(Math.min(each, ids.length));
    for (let start = 0; start < ids.length; start += each) {
      const row = ids.slice(start, start + each);
      placeRow(row, Math.max(0, (width - (isChain ? longest : widthOf(row.length))) / 2), y);
      y += node.height + node.rowGap;
    }
    y += node.layerGap - node.rowGap;
  }
  return { places, rows, height: Math.max(0, y - node.layerGap) };
}

/** Layers, but those of a long chain together: each of them has one node, the child of the one before. */
function blocksOf(layers) {
  const blocks = [];
  for (let at = 0; at < layers.length; at += 1) {
    let end = at;
    while (end < layers.length && layers[end].length === 1) end += 1;
    const isChain = end - at > LONG_CHAIN;
    blocks.push({ ids: isChain ? layers.slice(at, end).flat() : layers[at], isChain });
    if (isChain) at = end - 1;
  }
  return blocks;
}

export function childrenOf(nodes) {
  const found = new Map(nodes.map((node) => [node.id, []]));
  for (const node of nodes) for (const parent of node.parents) found.get(parent)?.push(node.id);
  return found;
}

/** Sort each layer by the mean place of its neighbours in the layers before it. */
function sortLayers(layers, neighbours) {
  const places = new Map();
  for (const layer of layers) {
    const keys = new Map(layer.map((id, n) => [id, mean(neighbours.get(id), places) ?? share(n, layer)]));
    layer.sort((one, other) => keys.get(one) - keys.get(other));
    layer.forEach((id, n) => places.set(id, share(n, layer)));
  }
}

function share(place, layer) {
  return (place + 0.5) / layer.length;
}

function mean(ids, places) {
  const known = ids.map((id) => places.get(id)).filter((place) => place !== undefined);
  return known.length ? known.reduce((sum, place) => sum + place, 0) / known.length : null;
}
