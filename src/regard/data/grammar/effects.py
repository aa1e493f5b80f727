"""Why people do things: how they feel or what the weather is, and what they do then, without who does it."""

from regard.data.grammar.phrase import Phrase, phrases

_REST = """
    stayed:1 at:2 home:3                      | 待:1 在:2 家:3 里:2
    went:1 to:1 bed:1 at:2 eight:3 o'clock:2  | 八:3 点:2 就 睡觉:1 了:1
    rested:1 at:2 home:3                      | 在:2 家:3 里:2 休息:1 了:1
    did:2 not:2 go:1 to:1 school:3            | 没:2 去:1 学校:3
    did:2 not:2 go:1 to:1 work:1              | 没:2 上班:1
    did:2 not:2 do:1 homework:3               | 没:2 做:1 作业:3
    did:2 not:2 play:1 basketball:3           | 没:2 打:1 篮球:3
    did:2 not:2 clean:1 the room:3            | 没:2 打扫:1 房间:3
"""
AFTER_FEELING = {
    "tired": phrases(_REST + "slept:1 for ten:2 hours:3 | 睡:1 了:1 十:2 个 小时:3"),
    "ill": phrases(
        _REST
        + """
        went:1 to:1 the hospital:2           | 去:1 了:1 医院:2
        did:2 not:2 have:1 dinner:3          | 没:2 吃:1 晚饭:3
        drank:1 a:2 glass:3 of hot:4 water:5 | 喝:1 了:1 一:2 杯:3 热:4 水:5
    """
    ),
    "busy": phrases("""
        did:2 not:2 have:1 lunch:3       | 没:2 吃:1 午饭:3
        did:2 not:2 watch:1 television:3 | 没:2 看:1 电视:3
        did:2 not:2 go:1 home:3          | 没:2 回:1 家:3
        did:2 not:2 come:1 back:1        | 没:2 回来:1
        did:2 not:2 go:1 to:1 the park:3 | 没:2 去:1 公园:3
        did:2 not:2 cook:1 dinner:3      | 没:2 做:1 晚饭:3
    """),
    "happy": phrases("""
        sang:1 a:2 song:3          | 唱:1 了:1 一:2 首 歌:3
        laughed:1                  | 笑:1 了:1
        danced:1 in:2 the garden:3 | 在:2 花园:3 里:2 跳舞:1 了:1
        bought:1 some:2 flowers:3  | 买:1 了:1 一些:2 花:3
    """),
    "sad": phrases("""
        cried:1                                | 哭:1 了:1
        did:2 not:2 want:1 to:1 have:3 dinner:4 | 不:2 想:1 吃:3 晚饭:4
        went:1 home:2                          | 回:1 家:2 了:1
        did:2 not:2 talk:1                     | 没:2 说话:1
    """),
}
FEELING = {
    "tired": "很 累:1", "ill": "生病:1 了:1", "busy": "很 忙:1", "happy": "很 高兴:1", "sad": "很 难过:1",
    "hungry": "很 饿:1", "thirsty": "很 渴:1",
}  # fmt: skip
_INDOORS = """
    stayed:1 at:2 home:3                | 待:1 在:2 家:3 里:2
    went:1 home:2 by:3 taxi:4           | 坐:3 出租车:4 回:1 家:2 了:1
    watched:1 television:2 at:3 home:4  | 在:3 家:4 里:3 看:1 电视:2 了:1
    closed:1 the window:2               | 把 窗户:2 关上:1 了:1
    did:2 not:2 play:1 football:3       | 没:2 踢:1 足球:3
    did:2 not:2 go:1 to:1 the park:3    | 没:2 去:1 公园:3
    played:1 chess:2 at:3 home:4        | 在:3 家:4 里:3 下:1 棋:2 了:1
"""
_HEAT = """
    opened:1 the window:2                 | 把 窗户:2 打开:1 了:1
    swam:1 in:2 the lake:3                | 在:2 湖:3 里:2 游泳:1 了:1
    drank:1 a:2 glass:3 of cold:4 water:5 | 喝:1 了:1 一:2 杯:3 冰:4 水:5
    rested:1 under:2 the tree:3           | 在:2 树:3 下面:2 休息:1 了:1
"""
_SUNSHINE = """
    took:1 a walk:1 in:2 the park:3     | 在:2 公园:3 里:2 散步:1 了:1
    flew:1 kites:2 in:3 the park:4      | 在:3 公园:4 里:3 放:1 风筝:2 了:1
    took:1 photos:2 by:3 the lake:4     | 在:3 湖:4 边:3 拍:1 照片:2 了:1
    went:1 to:1 the beach:2             | 去:1 了:1 海滩:2
"""
_TEA = "drank:1 a:2 cup:3 of hot:4 tea:5 | 喝:1 了:1 一:2 杯:3 热:4 茶:5"
AFTER_WEATHER: tuple[tuple[Phrase, tuple[Phrase, ...]], ...] = tuple(
    zip(
        phrases("""
            it was:1 raining:1       | 下雨:1 了:1
            it was:1 snowing:1       | 下雪:1 了:1
            it was very:2 cold:1     | 天气 非常:2 冷:1
            it was very:2 hot:1      | 天气 非常:2 热:1
            the weather:1 was good:2 | 天气:1 很 好:2
        """),
        map(phrases, (_INDOORS, _INDOORS, _INDOORS + _TEA, _HEAT, _SUNSHINE)),
    )
)
IN_SPITE = phrases("""
    tired:2        | 很 累:2
    very:3 tired:2 | 非常:3 累:2
    busy:2         | 很 忙:2
    ill:2          | 生病:2 了:2
    hungry:2       | 很 饿:2
""")
ADVICE = {
    ("tired", "累"): phrases("""
        rest:1                      | 休息:1
        go:1 to:1 bed:1             | 睡觉:1
        drink:1 a:2 cup:3 of tea:4  | 喝:1 一:2 杯:3 茶:4
    """),
    ("hungry", "饿"): phrases("""
        eat:1 a:2 bowl:3 of rice:4 | 吃:1 一:2 碗:3 米饭:4
        have:1 lunch:2             | 吃:1 午饭:2
        eat:1 some:2 bread:3       | 吃:1 一些:2 面包:3
    """),
    ("thirsty", "渴"): phrases("""
        drink:1 some:2 water:3        | 喝:1 一些:2 水:3
        drink:1 a:2 glass:3 of milk:4 | 喝:1 一:2 杯:3 牛奶:4
    """),
    ("ill", "生病"): phrases("""
        go:1 to:1 the hospital:2 | 去:1 医院:2
        stay:1 at:2 home:3       | 待:1 在:2 家:3 里:2
        rest:1 at:2 home:3       | 在:2 家:3 里:2 休息:1
    """),
}
FINISHED = phrases("""
    had:1 breakfast:2         | 吃完:1 早饭:2
    had:1 lunch:2             | 吃完:1 午饭:2
    had:1 dinner:2            | 吃完:1 晚饭:2
    finished:1 the homework:2 | 做完:1 作业:2
    finished:1 the work:2     | 做完:1 工作:2
    got:1 up:1                | 起床:1
    came:1 home:2             | 回:1 家:2
""")
