package delta

// These are the streams of a patch, in their order in the patch, for every variant but
// Whole. The literals follow the streams and extend to the patch's end.
const (
	streamSkips       = iota // literal bytes before each block
	streamSizes              // of the blocks
	streamMoves              // changes of displacement between blocks, zigzag
	streamGaps               // see differences
	streamValues             // see differences
	streamImages             // how both files are loaded
	streamWordGaps           // words predicted correctly before each wrong one
	streamWordErrors         // corrections of the words predicted wrongly
	streamOperandGaps        // the same for operands, in Small
	streamOperandErrors
	streamCount
)

const (
	// chunk is how much of a block is processed at once. It is part of the
	// format: no operand crosses the border between two chunks.
	chunk = 64 << 10

	// windowSize is how far back the compressed streams refer, in bytes; applying a patch keeps
	// that much of each stream in memory.
	windowSize = 4 << 20

	// maxStream limits the compressed bytes of all streams that are kept in
	// memory, beyond the size of the new file.
	maxStream = 1 << 20
)
