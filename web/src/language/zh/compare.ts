/** The compare view. */
import type { compare as en } from "../en/compare";

export const compare: Readonly<Record<keyof typeof en, string>> = {
  "compare.read": "两份记录的同一处。差为 B − A：橙色处 B 看得更多，蓝色处 A 看得更多。",
  "compare.none": "还没有可比较的对象。请在上方“与之比较”中选择第二份记录，它会并排显示。",
  "compare.loading": "正在读取两张图……",
  "compare.failed": "无法比较这两张图：{why}",
  "compare.difference": "B − A",
  "compare.shapes": "没有差图：A 为 {aq} 个查询 × {ak} 个键，B 为 {bq} × {bk}；单元格对应的不是同一对。",
  "compare.layers": "B 没有第 {layer} 层的第 {head} 个头，因此这里没有可并列的内容。",
  "compare.names": "A 为 {a}，B 为 {b}。",
  "compare.tokens": "两边的词元不同：单元格按位置对应，而非按词对应。",
  "compare.largest": "最大差",
  "compare.mean": "差的平均大小",
  "compare.means": "每个像素是 {size} × {size} 个权重的两个均值之差。",
  "compare.seen": "对整张图中可看的部分",
  "compare.part": "对整张图的 {size} × {size} 均值；单个权重的差可能更大",
  "compare.equal": "两张图的每个权重都相等。",
};
