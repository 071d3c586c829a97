package delta

// These are the streams of a patch, in their order in the patch, for every variant but
// Whole. The literals follow the streams and extend to the patch's end.
const (
	streamSkips       = iota // numbers of literal bytes before each block
	streamSizes              // bytes of each block
	streamMoves              // changes of displacement between blocks, zigzag
	streamGaps               // see sparse.differences
	streamValues             // see sparse.differences
	streamImages             // how both files are loaded
	streamWordGaps           // words predicted correctly before each wrong one
	streamWordErrors         // corrections of the words predicted wrongly
	streamOperandGaps        // operands predicted correctly before each wrong one, in Small
	streamOperandErrors
	streamCount
)

const (
	// chunk is the number of bytes of a block that are processed at once. It is part of the format:
	// no operand crosses the border between two chunks.
	chunk = 64 << 10

	// windowSize is how far back the compressed streams refer, in bytes; applying a patch keeps
	// that much of each stream in memory.
	windowSize = 4 << 20

	// maxStream limits the compressed streams, all of which are kept in memory: together they may
	// be larger than the new file by at most maxStream bytes.
	maxStream = 1 << 20
)
