"""When something happens. Chinese says it before the verb."""

from regard.data.grammar.phrase import phrases, weave

DAYS = tuple(
    weave(f"on:1 {day}:1", f"星期{number}:1")
    for day, number in zip(
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"), "一二三四五六天"
    )
)
WHOLE_DAYS_AGO = phrases("yesterday:1 | 昨天:1\n last:1 Sunday:2 | 上个:1 星期天:2")
PAST = WHOLE_DAYS_AGO + phrases("""
    last:1 night:2          | 昨天:1 晚上:2
    this:1 morning:2        | 今天:1 早上:2
    yesterday:1 morning:2   | 昨天:1 早上:2
    yesterday:1 afternoon:2 | 昨天:1 下午:2
""")
LONG_AGO = phrases("""
    last:1 week:2         | 上个:1 星期:2
    last:1 month:2        | 上个:1 月:2
    last:1 year:1         | 去年:1
    two:1 days:2 ago:3    | 两:1 天:2 前:3
    three:1 months:2 ago:3 | 三:1 个 月:2 前:3
    two:1 years:2 ago:3   | 两:1 年:2 前:3
    last:1 summer:2       | 去年:1 夏天:2
""")
WHOLE_HABITS = phrases("every:1 day:1 | 每天:1\n at:1 weekends:1 | 周末:1\n every:1 Sunday:2 | 每个:1 星期天:2")
HABITS = WHOLE_HABITS + phrases("""
    every:1 morning:2     | 每天:1 早上:2
    every:1 evening:2     | 每天:1 晚上:2
    every:1 afternoon:2   | 每天:1 下午:2
    in:1 the evening:1    | 晚上:1
""")
WHOLE_DAYS_TO_COME = phrases("""
    tomorrow:1                          | 明天:1
    the:1 day:1 after:1 tomorrow:1      | 后天:1
    today:1                             | 今天:1
""")
FUTURE = WHOLE_DAYS_TO_COME + phrases("""
    tonight:1              | 今天:1 晚上:1
    tomorrow:1 morning:2   | 明天:1 早上:2
    tomorrow:1 afternoon:2 | 明天:1 下午:2
    tomorrow:1 evening:2   | 明天:1 晚上:2
    this:1 afternoon:2     | 今天:1 下午:2
    this:1 weekend:2       | 这个:1 周末:2
""")
LATER = phrases("""
    next:1 week:2   | 下个:1 星期:2
    next:1 month:2  | 下个:1 月:2
    next:1 year:1   | 明年:1
    next:1 summer:2 | 明年:1 夏天:2
    next:1 Sunday:2 | 下个:1 星期天:2
""")
NOW = weave("now:1", "现在:1")
ADVERBS = phrases("""
    often:1     | 经常:1
    always:1    | 总是:1
    usually:1   | 通常:1
    sometimes:1 | 有时候:1
    also:1      | 也:1
    never:1     | 从来:1 不:1
""")
CLOCK = tuple(
    weave(f"at:1 {hour}:2 o'clock:1", f"{number}:2 点:1")
    for hour, number in zip(
        ("five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
        ("五", "六", "七", "八", "九", "十", "十一", "十二"),
    )
)
SEASONS = phrases("in:1 spring:1 | 春天:1\n in:1 summer:1 | 夏天:1\n in:1 autumn:1 | 秋天:1\n in:1 winter:1 | 冬天:1")
DURATIONS = phrases("""
    for two:2 hours:3   | 两:2 个 小时:3
    for three:2 hours:3 | 三:2 个 小时:3
    for eight:2 hours:3 | 八:2 个 小时:3
    for ten:2 minutes:3 | 十:2 分钟:3
""")
YEARS = phrases("""
    for two:2 years:3   | 两:2 年:3
    for three:2 years:3 | 三:2 年:3
    for five:2 years:3  | 五:2 年:3
    for ten:2 years:3   | 十:2 年:3
    for many:2 years:3  | 很多:2 年:3
""")
