package models

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Billing is a billing model of GPU shares.
type Billing string

// Billing models. Shares that are taken in a reservation are reserved, or preemptible by its QoS level.
const (
	BillingOnDemand    Billing = "on_demand"
	BillingReserved    Billing = "reserved"
	BillingPreemptible Billing = "preemptible"
)

// Billings are all billing models.
var Billings = []Billing{BillingOnDemand, BillingReserved, BillingPreemptible}

// Words is the billing model's name for users.
func (b Billing) Words() Text {
	switch b {
	case BillingReserved:
		return Say("reserved")
	case BillingPreemptible:
		return Say("reserved, preemptible")
	default:
		return Say("on demand")
	}
}

// GPUPrice is the price of a GPU core hour of a device model and a billing model, from an
// instant until the next price of the same.
type GPUPrice struct {
	ID        int64     `json:"id"`
	Model     string    `json:"model"`
	Billing   Billing   `json:"billing"`
	Micros    int64     `json:"micros"` // millionths of the currency
	Currency  string    `json:"currency"`
	ValidFrom time.Time `json:"valid_from"`
	CreatedAt time.Time `json:"created_at"`
}

// TableName overrides gorm's plural.
func (GPUPrice) TableName() string { return "gpu_prices" }

// MaxPriceMicros is the largest price of a GPU core hour, 1000 units: the cost of a million
// GPU cores over a year is below the largest int64.
const MaxPriceMicros = 1000 * microsPerUnit

const (
	microsPerUnit = 1_000_000
	msPerHour     = 3_600_000
)

// Cost is the exact cost of GPU core milliseconds. The zero value is nothing.
type Cost struct{ sum big.Int } // millionths × milliseconds

// Add adds GPU core milliseconds at a price of a GPU core hour in millionths.
func (c *Cost) Add(coreMS, micros int64) {
	c.sum.Add(&c.sum, new(big.Int).Mul(big.NewInt(coreMS), big.NewInt(micros)))
}

// Micros is the cost in millionths, rounded to the nearest, halves up.
func (c *Cost) Micros() int64 {
	n := new(big.Int).Add(&c.sum, big.NewInt(msPerHour/2))
	return n.Div(n, big.NewInt(msPerHour)).Int64()
}

// Money formats millionths of a currency, with at least two decimals.
func Money(micros int64, currency string) string {
	text := strconv.FormatInt(micros/microsPerUnit, 10) + "." + strconv.FormatInt(microsPerUnit+micros%microsPerUnit, 10)[1:]
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > 3 {
		text = text[:len(text)-1]
	}
	return text + " " + currency
}

// ParseMicros parses an amount of money with at most six decimals, such as 0.012.
func ParseMicros(text string) (int64, error) {
	whole, part, _ := strings.Cut(strings.TrimSpace(text), ".")
	if whole == "" || len(whole) > 12 || len(part) > 6 || strings.ContainsAny(whole+part, "+-") {
		return 0, errors.New("not an amount of money")
	}
	return strconv.ParseInt(whole+part+strings.Repeat("0", 6-len(part)), 10, 64)
}

// CoreHours formats GPU core milliseconds as hours with two decimals, rounded.
func CoreHours(coreMS int64) string {
	hundredths := (coreMS + msPerHour/200) / (msPerHour / 100)
	return strconv.FormatInt(hundredths/100, 10) + "." + strconv.FormatInt(100+hundredths%100, 10)[1:]
}
