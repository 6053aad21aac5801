package models

// MaxAmount is the maximum amount of a resource, so that no sum over a million
// rows overflows.
const MaxAmount = int64(1_000_000_000_000)

// Unlimited is the amount of a quota or limit that nothing bounds. It is larger
// than every amount, also in sums of a million rows; the methods of Resources keep
// it, and JSON has it as "unlimited".
const Unlimited = 2 * MaxAmount

// UnlimitedWord is Unlimited in JSON and in forms.
const UnlimitedWord = "unlimited"

// unlimitedSign is an unlimited amount in tables. In sentences it is a word; see [Text.In].
const unlimitedSign = "∞"

// IsUnlimited reports whether an amount, or a sum of amounts, is unlimited.
func IsUnlimited(n int64) bool { return n > MaxAmount }
