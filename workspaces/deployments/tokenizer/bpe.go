package tokenizer

import "container/heap"

// pair is two tokens that follow on each other.
type pair struct{ left, right int32 }

// merge is what a pair becomes; lower ranks come first.
type merge struct {
	rank  int
	token int32
}

// bpe merges bytes to tokens.
type bpe struct {
	bytes  [256]int32
	merges map[pair]merge
	whole  map[string]int32 // tokens that pieces become without merging; nil: none
}

// symbol is a token in a list that shrinks.
type symbol struct {
	token      int32
	prev, next int // places of the neighbors; -1: none
}

// candidate is a merge at a place.
type candidate struct {
	merge
	pair
	at int // place of the left symbol
}

type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	if c[i].rank != c[j].rank {
		return c[i].rank < c[j].rank
	}
	return c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	*c = (*c)[:last]
	return x
}

// encode appends the tokens of a piece: of all pairs the one of the lowest rank is merged, of
// several the leftmost one, until there is none.
func (b *bpe) encode(tokens []int32, piece string) []int32 {
	if token, ok := b.whole[piece]; ok {
		return append(tokens, token)
	}
	list := make([]symbol, len(piece))
	for i := range list {
		list[i] = symbol{b.bytes[piece[i]], i - 1, i + 1}
	}
	list[len(list)-1].next = -1
	var queue candidates
	add := func(at int) {
		if at < 0 || list[at].next < 0 {
			return
		}
		p := pair{list[at].token, list[list[at].next].token}
		if m, ok := b.merges[p]; ok {
			heap.Push(&queue, candidate{m, p, at})
		}
	}
	for i := range list {
		add(i)
	}
	for len(queue) > 0 {
		c := heap.Pop(&queue).(candidate)
		left := &list[c.at]
		if left.token != c.left || left.next < 0 || list[left.next].token != c.right {
			continue // one of both was merged with another one
		}
		right := &list[left.next]
		left.token, left.next = c.token, right.next
		right.token = -1
		if left.next >= 0 {
			list[left.next].prev = c.at
		}
		add(left.prev)
		add(c.at)
	}
	for at := 0; at >= 0; at = list[at].next {
		tokens = append(tokens, list[at].token)
	}
	return tokens
}
