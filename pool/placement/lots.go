package placement

// draws tells whether the policy draws lots.
func (p *Policy) draws() bool { return p.terms[0].criterion == Lot }

// stamp stands for the state of the pool: the same whatever the order in it,
// and another one as soon as somebody takes or releases a share.
func stamp(s Snapshot, seed int64) uint64 {
	sum := mix(uint64(seed))
	for i := range s.Nodes {
		for j := range s.Nodes[i].Devices {
			dev := &s.Nodes[i].Devices[j]
			for k := range dev.Shares {
				inUse := &dev.Shares[k]
				sum += mix(mix(uint64(dev.ID)) ^ mix(uint64(inUse.Holder)+1) ^ uint64(inUse.Cores))
			}
		}
	}
	return sum
}

// lot is what is drawn for a number, never negative.
func (c *contest) lot(n int64) int64 { return int64(mix(c.stamp^mix(uint64(n))) >> 16) }

// mix spreads a number over all bits, as splitmix64 does (Steele, Lea and
// Flood, OOPSLA 2014).
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}
